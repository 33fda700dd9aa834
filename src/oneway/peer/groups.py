"""Rate limit by group: a peer learns from so many samples of a person and no more, for ever.

The promise of a task with unit = "group" is about that many. What is stored is a keyed hash of the
group's name, never the name. Counts lie in 256 buckets, since snapshots share what did not change:
a sample makes one bucket anew, in memory and on disk, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeAlias

from oneway.errors import DataError, GroupLimitError
from oneway.sentences import shown
from oneway.tables.cells import group_name
from oneway.task.privacy import Privacy

HASH_BYTES = 16

Bucket: TypeAlias = dict[bytes, int]
"""How many samples of a group were learned from, by the hash of its name; never changed."""
Groups: TypeAlias = Mapping[int, Bucket]
"""Buckets by the first byte of the hashes in them."""


class GroupCounter:
    """Counts the samples of every group, and refuses those beyond what the task promises.

    Args:
        privacy: Of the task, as this peer learns by it.
        secret: Only this peer's; it must outlive the store, or a restored one would count anew.
    """

    def __init__(self, privacy: Privacy, secret: bytes) -> None:
        self._column = privacy.group if privacy.unit == "group" else ""
        self._most = privacy.records_per_group
        self._secret = secret

    def __bool__(self) -> bool:
        """Whether anything is counted."""
        return bool(self._column)

    def counted(self, groups: Groups, cells: Mapping[str, object]) -> Groups:
        """The counts with one more sample, which may be learned from.

        Raises:
            DataError: The sample does not say whose it is.
            GroupLimitError: Its group has had all its samples.
        """
        if not self._column:
            return groups
        name = self._hash(cells)
        count = groups.get(name[0], {}).get(name, 0)
        if count >= self._most:
            raise GroupLimitError(
                f"{shown(self._column)} names a group with {count:,} samples that were learned "
                f"from, and records_per_group of the task is {self._most:,}; no more are used"
            )
        return _with(groups, name, count + 1)

    def noted(self, groups: Groups, cells: Mapping[str, object]) -> Groups:
        """The counts with a sample that was learned from in a life that is forgotten.

        It has happened, so that nothing is refused; who is not named cannot have been learned from.
        """
        try:
            name = self._hash(cells) if self._column else b""
        except DataError:
            name = b""
        return _with(groups, name, groups.get(name[0], {}).get(name, 0) + 1) if name else groups

    def _hash(self, cells: Mapping[str, object]) -> bytes:
        raw = cells.get(self._column)
        name = group_name(raw)
        if not name:
            said = f"is {shown(raw)}" if self._column in cells else "is missing"
            raise DataError(
                f"column {shown(self._column)} {said}; it must say whose the sample is, since the "
                "task limits how many are used of each group"
            )
        text, key = name.encode("utf-8", "surrogatepass"), self._secret
        return blake2b(text, key=key, digest_size=HASH_BYTES, person=b"oneway group").digest()


def added(groups: Groups, more: Groups) -> Groups:
    """The counts of both together."""
    for bucket in more.values():
        for name, count in bucket.items():
            groups = _with(groups, name, groups.get(name[0], {}).get(name, 0) + count)
    return groups


def _with(groups: Groups, name: bytes, count: int) -> Groups:
    return {**groups, name[0]: {**groups.get(name[0], {}), name: count}}

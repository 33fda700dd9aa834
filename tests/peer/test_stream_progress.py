"""Rows learned in a life that a restored backup forgot are not learned again."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from town import BOOT, LIMITS, SAMPLE, TASK, Town, config, key_of, life, quiet

from oneway.errors import DataError
from oneway.peer.sample_stream import SampleStream
from oneway.peer.samples import rows
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.stream_progress import Place, ProgressSeal, ToldProgress
from oneway.protocol.messages import Data, Gone, Progress
from oneway.protocol.state import PeerState
from oneway.tables import Number
from oneway.tables.rows import Position
from oneway.task.task import Task
from oneway.transport.base import Arrival
from oneway.transport.wire import decode, encode

offsets = st.integers(0, 2**63)
positions = st.builds(Position, offsets, offsets, offsets, offsets, st.integers(0, 2**32 - 1))
SEAL = ProgressSeal(b"secret" * 5, TASK.fingerprint)


def at(row: int) -> Position:
    """The place after a row of a file."""
    return Position(10 * row, 10 * row - 10, row, row, row)


# The seal.


@given(st.integers(1, 2**61), positions)
def test_a_peer_can_read_the_progress_that_it_told(learned, position):
    progress = SEAL.seal(Journal(samples=learned, position=position))
    assert progress.learned == learned
    assert SEAL.open(progress) == Place(learned, position)
    msgspec.convert(msgspec.to_builtins(progress), Progress)  # it is short enough to travel


@given(st.integers(1, 2**61), positions, st.data())
def test_no_progress_can_be_invented_or_changed(learned, position, data):
    true = SEAL.seal(Journal(samples=learned, position=position))
    bit = data.draw(st.integers(0, 8 * len(true.mark) - 1))
    changed = bytearray(true.mark)
    changed[bit // 8] ^= 1 << bit % 8
    assert SEAL.open(Progress(learned, bytes(changed))) is None
    assert SEAL.open(Progress(learned + 1, true.mark)) is None
    for length in range(len(true.mark)):
        assert SEAL.open(Progress(learned, true.mark[:length])) is None
    assert ProgressSeal(b"another" * 4, TASK.fingerprint).open(true) is None
    assert ProgressSeal(b"secret" * 5, b"another task").open(true) is None


def test_a_mark_shows_neither_where_rows_lie_nor_how_long_they_are():
    """Marks of the same size, which differ in about half of their bits whatever changes."""
    one = SEAL.seal(Journal(samples=1, position=at(1))).mark
    other = SEAL.seal(Journal(samples=2, position=at(1))).mark
    differing = int.from_bytes(bytes(a ^ b for a, b in zip(one, other, strict=True)), "big")
    assert 8 * len(one) / 4 < differing.bit_count() < 8 * len(one) * 3 / 4


# A sender that is restored from a backup.


def learn_row(town: Town, row: int) -> None:
    town.time += 1e-3
    town.nodes["alice"].learn(SAMPLE, "yes", at(row))


def restore(town: Town, backup: Snapshot, receivers: tuple[str, ...] = ("bob",)) -> None:
    town.power_off("alice")
    town.time += 1.0
    town.power_on("alice", backup, config("alice", receivers))


def forgetful_town(**edges: tuple[str, ...]) -> Town:
    """Alice has learned 6 rows and told them, and is restored from a backup of 4 rows."""
    edges = edges or {"alice": ("bob",), "bob": ()}
    town = quiet(**edges)
    for row in range(1, 7):
        learn_row(town, row)
        town.exchange()
        if row == 4:
            backup = town.durable["alice"]
    restore(town, backup, edges["alice"])
    return town


def test_a_restored_backup_goes_on_after_what_its_receivers_have_heard(caplog):
    town = forgetful_town()
    assert town.nodes["alice"].snapshot.journal.learned == 4
    town.pass_time(1.0)
    journal = town.nodes["alice"].snapshot.journal
    assert (journal.samples, journal.forgotten, journal.position) == (4, 2, at(6))
    assert journal.remembered == at(4)
    assert town.durable["alice"].journal == journal, "it is durable with the answer"
    sentence = "2 rows were learned in a life that this backup does not remember; they are not"
    assert sentence in caplog.text


@pytest.mark.parametrize("mark", [b"", bytes(52), bytes(64), None])
def test_a_lying_receiver_cannot_make_a_restored_peer_pass_over_its_data(mark):
    """Not with a mark of its own, and not with one that alice made, under another number."""
    town = forgetful_town()
    alice = town.nodes["alice"]
    true = town.state("bob").heard_progress[key_of("alice")]
    [edge] = alice.snapshot.state.out.values()
    false = Progress(10**6, true.mark if mark is None else mark)
    reply = Gone(edge.epoch, life(), 12345, false)
    alice.take(Arrival(key_of("bob"), encode(reply, TASK.fingerprint), "reply"))
    assert alice.snapshot.journal.learned == 4
    assert alice.guard.about(key_of("bob")).rejected["false progress"] == 1


# Waiting for answers.


def test_with_privacy_no_row_is_learned_before_all_receivers_have_answered():
    town = forgetful_town(alice=("bob", "carol"), bob=(), carol=())
    alice = town.nodes["alice"]
    assert alice.unanswered == [], "without privacy nothing waits"
    alice.each_sample_once = True
    assert set(alice.unanswered) == {key_of("bob"), key_of("carol")}
    carol = town.ends["carol"]
    carol.crash()
    town.pass_time(1.0)
    assert alice.unanswered == [key_of("carol")]
    assert alice.snapshot.journal.learned == 6, "bob has told already"
    town.time = alice.started + LIMITS.presume_dead_after - 1.0
    assert alice.unanswered == [key_of("carol")]
    town.time += 1.0
    assert alice.unanswered == [], "who is silent for so long is presumed dead"


class Schedule:
    """Alice reads rows and is often restored; who has seen which row in which of her lives."""

    def __init__(self, seed: int, waits: bool = True) -> None:
        self.rng = random.Random(seed)
        self.waits = waits
        self.receivers = ("bob", "carol")
        self.town = quiet(alice=self.receivers, bob=(), carol=())
        self.num_lives = 0
        self.learned: tuple[tuple[int, int], ...] = ()
        """Row and life of all that alice's state has learned."""
        self.contents: dict[tuple[bytes, bytes], tuple[tuple[int, int], ...]] = {}
        self.seen: set[tuple[int, int]] = set()
        self.backups = [(self.town.durable["alice"], self.learned)]
        self.begin()

    def begin(self) -> None:
        self.num_lives += 1
        self.town.nodes["alice"].each_sample_once = self.waits
        self.label()

    def label(self) -> None:
        """A new total contains whatever alice has learned by now."""
        for edge in self.town.state("alice").out.values():
            for total in edge.totals.values():
                self.contents.setdefault((edge.receiver, total.tobytes()), self.learned)

    def run(self, num_steps: int) -> Schedule:
        steps = [self.read, self.speak, self.arrive, self.lose, self.backup, self.restore]
        for step in self.rng.choices([*steps, self.crash], [8, 8, 24, 1, 2, 1, 1], k=num_steps):
            step()
            self.town.time += 0.02
            self.label()
        return self

    def read(self) -> None:
        alice = self.town.nodes["alice"]
        if not alice.unanswered:
            row = alice.snapshot.journal.position.num_rows + 1
            self.learned = (*self.learned, (row, self.num_lives))
            # Another number in every life, so that no two of her totals are the same by chance.
            sample = {"u": 1.0 + row / 64, "v": self.num_lives / 64}
            alice.learn(sample, "yes", at(row))

    def speak(self) -> None:
        for name, node in self.town.nodes.items():
            self.town.commit(name, node)
            node.tick()
            self.label()
            self.town.commit(name, node)
            self.town.send(name, node.overdue())

    def arrive(self) -> None:
        flying = self.town.network.in_flight
        if not flying:
            return
        index = self.rng.randrange(len(flying))
        parcel = flying[index]
        self.town.network.deliver(index)
        for name, node in self.town.nodes.items():
            while (arrival := self.town.ends[name].receive_now()) is not None:
                word = decode(arrival.frame)[1]
                if isinstance(word, Data):
                    self.seen.update(self.contents[parcel.receiver, word.total.tobytes()])
                node.take(arrival)
                self.town.send(name, node.words())

    def lose(self) -> None:
        flying = self.town.network.in_flight
        if flying:
            del flying[self.rng.randrange(len(flying))]

    def backup(self) -> None:
        journal = self.town.durable["alice"].journal
        self.backups.append((self.town.durable["alice"], self.learned[: journal.samples]))

    def restore(self) -> None:
        # Backups of a life that is given up with this one are not used: what such a life learned
        # and told nobody is learned again, and is in its backups all the same.
        del self.backups[self.rng.randrange(len(self.backups)) + 1 :]
        self.start(*self.backups[-1])

    def crash(self) -> None:
        durable = self.town.durable["alice"]
        self.start(durable, self.learned[: durable.journal.samples])

    def start(self, snapshot: Snapshot, learned: tuple[tuple[int, int], ...]) -> None:
        # With its process, a peer's connections end, and what was under way over them; what its
        # receivers have seen and not made durable is theirs to keep.
        for name in self.receivers:
            self.town.commit(name, self.town.nodes[name])
        self.town.network.in_flight.clear()
        self.learned = learned
        restore(self.town, snapshot, self.receivers)
        self.begin()

    @property
    def seen_twice(self) -> set[int]:
        """Rows that receivers have seen from two lives."""
        found = [row for row, _ in self.seen]
        return {row for row in found if found.count(row) > 1}


@given(st.integers(0, 2**32 - 1))
def test_no_row_is_in_what_was_seen_of_two_lives(seed):
    schedule = Schedule(seed).run(400)
    assert not schedule.seen_twice


@pytest.mark.parametrize("part", ["waiting", "skipping"])
def test_without_waiting_or_skipping_rows_are_learned_twice(part, monkeypatch):
    if part == "skipping":
        monkeypatch.setattr(ToldProgress, "hear", lambda *_: True)
    schedules = [Schedule(seed, waits=part != "waiting").run(400) for seed in range(12)]
    assert sum(bool(it.seen_twice) for it in schedules) >= 3


# The stream.


TASK_OF_FILES = Task("ridge", "y", (Number("x"),))


def write_rows(path, first: int, last: int, start: str = "x,y\n") -> str:
    path.write_text(start + "".join(f"{row},{10 * row}\n" for row in range(first, last + 1)))
    return str(path)


def node_with(journal, once: bool, groups: object = None, tell=None) -> SimpleNamespace:
    """What a stream asks of a node."""

    class Now:
        @property
        def journal(self) -> Journal:
            return journal()

    return SimpleNamespace(
        snapshot=Now(),
        task=TASK_OF_FILES,
        each_sample_once=once,
        groups=groups,
        note_forgotten=tell,
    )


class RowsAsGroups:
    """Takes every row for a group of its own."""

    def noted(self, noted: dict, cells: dict) -> dict:
        return {**noted, int(cells["x"]): {}}


def read_rows(source: str, journal: Journal, move=lambda _: None, once: bool = True) -> list[int]:
    """The rows that a peer gets, whose journal may be moved after a row."""
    found: list[int] = []

    async def read() -> None:
        nonlocal journal
        node = node_with(lambda: journal, once)
        stream = SampleStream(source).samples(node, lambda _: None)
        async with asyncio.timeout(240), aclosing(stream) as items:
            async for item in items:
                found.append(int(item.values["x"]))
                journal = move(found[-1]) or Journal(
                    position=item.position, remembered=journal.remembered
                )

    asyncio.run(read())
    return found


def position_after(source: str, row: int) -> Position:
    async def read() -> Position:
        async with aclosing(rows(source)) as items:
            return [item.position async for item in items][row - 1]

    return asyncio.run(read())


def test_a_stream_goes_on_from_where_its_peer_is_set_right(tmp_path):
    source = write_rows(tmp_path / "rows.csv", 1, 9)
    later = Journal(position=position_after(source, 7))
    assert read_rows(source, Journal(position=position_after(source, 2))) == [3, 4, 5, 6, 7, 8, 9]
    moved = read_rows(source, Journal(), move=lambda row: later if row == 3 else None)
    assert moved == [1, 2, 3, 8, 9]
    at_the_end = Journal(position=position_after(source, 9))
    assert read_rows(source, Journal(), lambda row: at_the_end if row == 3 else None) == [1, 2, 3]


def test_rows_of_a_forgotten_life_are_passed_over_and_told_once(tmp_path):
    source = write_rows(tmp_path / "rows.csv", 1, 9)
    here = Snapshot(PeerState.new(2, 1, BOOT), Journal(position=position_after(source, 2)))
    # Two receivers tell, and the first one did not know of all: rows of both are passed over.
    told = here.with_forgotten(3, position_after(source, 5))
    told = told.with_forgotten(5, position_after(source, 7))
    passed: list[list[int]] = []
    noted = told.with_noted({})
    used = told.with_skipped(position_after(source, 8))
    journals = [one.journal for one in (told, noted, used, here)]

    async def read(journal: Journal) -> list[int]:
        node = node_with(lambda: journal, True, RowsAsGroups(), lambda it: passed.append(list(it)))
        stream = SampleStream(source).samples(node, lambda _: None)
        async with asyncio.timeout(240), aclosing(stream) as items:
            async for item in items:
                return [int(item.values["x"])]
        return []

    assert [asyncio.run(read(journal)) for journal in journals] == [[8], [8], [9], [3]]
    assert passed == [[3, 4, 5, 6, 7]], "noted once, and what was learned as usual never"
    source = write_rows(tmp_path / "others.csv", 21, 29)
    with pytest.raises(DataError, match=r"others\.csv does not have the rows"):
        asyncio.run(read(told.journal))


def test_a_file_that_went_back_with_the_backup_is_not_learned_again(tmp_path):
    whole = write_rows(tmp_path / "whole.csv", 1, 9)
    told = Journal(position=position_after(whole, 7), remembered=position_after(whole, 2))
    old = write_rows(tmp_path / "old.csv", 1, 5)
    with pytest.raises(DataError, match=r"old\.csv.*after the first 2 "):
        read_rows(old, told)
    assert read_rows(old, told, once=False) == [3, 4, 5], "without privacy it goes on"
    assert read_rows(whole, told) == [8, 9]
    other = write_rows(tmp_path / "new.csv", 21, 23)
    assert read_rows(other, told) == [21, 22, 23], "a file of other rows is read from its start"

"""No group has more samples learned from than the task says, whatever happens to the peer."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from town import config

import oneway as ow
from oneway.errors import DataError, GroupLimitError
from oneway.lab.ports import Ports
from oneway.peer.groups import GroupCounter
from oneway.peer.home.home import Home
from oneway.peer.learner import Learner
from oneway.peer.node import Node
from oneway.peer.sample_stream import SampleStream
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore, read_snapshot
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import restart
from oneway.tables import Number
from oneway.tables.cells import group_name
from oneway.task.privacy import Privacy
from oneway.task.task import Task

SECRET, OTHER_SECRET, KEY = b"s" * 32, b"t" * 32, b"k" * 32
FEATURES = (Number("u"), Number("v"))
MANY = 2_000


def grouped(most: int = 2, **more: object) -> Privacy:
    return Privacy(unit="group", group="patient", records_per_group=most, **more)


def task_of(most: int) -> Task:
    privacy = grouped(most)
    return Task("logistic", "y", FEATURES, ("no", "yes"), privacy=privacy, samples_per_push=3)


def sample(patient: object) -> dict[str, object]:
    return {"u": 1.0, "v": -2.0, "patient": patient}


class Life:
    """One peer with a store on a real disk, and by hand a list of whose samples are in it."""

    def __init__(self, path: Path, task: Task) -> None:
        self.task, self.boots = task, count(2)
        first = Snapshot(PeerState.new(Learner(task).layout.width, ledger=1, boot=1 << 20))
        self.store = PeerStore.create(
            path, Owner(KEY, task.fingerprint, Learner(task).layout.width), first
        )
        self.path = path
        self.inside: list[str] = []
        self.durable: list[str] = []
        self.start()

    def start(self) -> None:
        saved = self.store.load()
        self.store.commit(replace(saved, state=restart(saved.state, next(self.boots) << 20)))
        self.node = Node(
            self.task, SECRET, config("alice"), self.store.load(), key=KEY,
            clock=lambda: 0.0, wall_clock=lambda: 1.7e9, new_epoch=lambda: 1,
        )  # fmt: skip
        self.node.ensure_minted()

    def commit(self) -> None:
        self.store.commit(self.node.snapshot)
        self.durable = list(self.inside)

    def end(self) -> None:
        """End a life at once: what was not committed is forgotten."""
        self.store.close()
        self.store = PeerStore.open(
            self.path, Owner(KEY, self.task.fingerprint, Learner(self.task).layout.width)
        )
        self.inside = list(self.durable)
        self.start()

    def learn(self, patient: str, u: object) -> None:
        try:
            self.node.learn({**sample(patient), "u": u}, "yes")
            self.inside.append(patient)
        except DataError as error:
            self.node.skip(str(error))


EVENTS = st.one_of(
    st.tuples(st.just("learn"), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["spoilt", "commit", "end"]), st.just("a")),
)


@given(st.integers(1, 3), st.lists(EVENTS, max_size=40))
def test_no_group_has_more_than_its_samples_in_the_batches_whatever_happens(most, events):
    """Released or not; and all that it may have: nobody is refused too early."""
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder) / "peer.sqlite", task_of(most))
        for what, patient in events:
            if what in ("learn", "spoilt"):
                before = Counter(life.inside)[patient]
                life.learn(patient, 1.0 if what == "learn" else "no number")
                if what == "learn":
                    assert Counter(life.inside)[patient] == min(before + 1, most)
            elif what == "commit":
                life.commit()
            else:
                life.end()
            assert max(Counter(life.inside).values(), default=0) <= most
            journal, memory = life.node.snapshot.journal, life.node.snapshot.memory
            assert journal.samples == len(life.inside)
            assert int(np.sum(memory.get("batch.count", 0))) == len(life.inside) % 3
        life.store.close()


def test_counts_that_are_not_stored_with_the_sample_let_a_group_have_more():
    """The mistake, by its name: counters in memory only begin anew with every start."""
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder) / "peer.sqlite", task_of(1))
        for _ in range(2):
            life.learn("a", 1.0)
            life.node.snapshot = replace(life.node.snapshot, groups={})
            life.commit()
            life.end()
        assert Counter(life.inside)["a"] == 2
        life.store.close()


def literal_hash(secret: bytes, name: str) -> bytes:
    return blake2b(name.encode(), key=secret, digest_size=16, person=b"oneway group").digest()


def test_counts_are_what_a_plain_dictionary_counts():
    rng = np.random.default_rng(3)
    counter, groups, plain = GroupCounter(grouped(4), SECRET), {}, Counter()
    for number in rng.zipf(1.3, size=MANY):
        name = str(number)
        if plain[name] < 4:
            groups = counter.counted(groups, sample(name))
            plain[name] += 1
        else:
            with pytest.raises(GroupLimitError, match="4 samples"):
                counter.counted(groups, sample(name))
    found = {name: number for bucket in groups.values() for name, number in bucket.items()}
    assert found == {literal_hash(SECRET, group_name(name)): plain[name] for name in plain}
    assert all(name[0] == place for place, bucket in groups.items() for name in bucket)


def test_only_the_peer_itself_can_tell_whose_a_hash_is(tmp_path):
    """The name is nowhere in the store, and nobody without the secret can try names."""
    life = Life(tmp_path / "peer.sqlite", task_of(2))
    life.learn("Ada Lovelace", 1.0)
    life.commit()
    life.store.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Lovelace" not in stored
    assert literal_hash(SECRET, "Ada Lovelace") in stored
    assert literal_hash(OTHER_SECRET, "Ada Lovelace") not in stored


@pytest.mark.parametrize(
    ("one", "other"),
    [("7", 7), ("7", 7.0), ("007", "7"), (" a ", "a"), ("1e3", 1000), (True, "true"),
     ("-0", 0), (np.int64(5), "5"), ("9" * 20, int("9" * 20)), (1e20, "1" + "0" * 20),
     ("Zo\u00eb", "Zoe\u0308"), ("\uff17", 7), ("\u3000a", "a")],
)  # fmt: skip
def test_a_group_is_one_however_it_is_spelt(one, other):
    assert group_name(one) == group_name(other) != ""


# A peer in its folder.


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "task.toml").write_text(task_of(2).to_toml())
    with Ports() as ports:  # not the first one that is free: other tests look for that, too
        yield Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", ports.reserve())


def run(home: Home, data: Path) -> Snapshot:
    """Let a peer read a file to its end."""

    async def live() -> None:
        peer = ow.Peer(home.folder)
        try:
            samples = SampleStream(str(data)).samples(peer.node, lambda _: None)

            async def and_then_stop():
                async for item in samples:
                    yield item
                peer.stop()

            async with asyncio.timeout(240):
                await peer.run(and_then_stop())
        finally:
            peer.close()

    asyncio.run(live())
    return read_snapshot(home.store_path)


def test_rows_of_a_forgotten_life_count_for_their_groups(home, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("patient,u,v,y\nada,1,2,yes\n")
    backup = run(home, data)
    shutil.copytree(home.folder, tmp_path / "backup")
    with data.open("a") as file:
        file.write("ada,1,2,yes\nbob,1,2,no\n")
    newest = run(home, data).journal
    restored = Home.open(tmp_path / "backup")
    peer = ow.Peer(restored.folder)
    assert peer.node.snapshot.journal == backup.journal
    peer.node.snapshot = peer.node.snapshot.with_forgotten(newest.learned, newest.position)
    peer.close()
    with data.open("a") as file:
        file.write("ada,1,2,yes\nbob,1,2,no\nbob,1,2,no\n")
    for _ in range(2):  # and a start later on nothing is counted again
        journal = run(restored, data).journal
        assert (journal.samples, journal.forgotten, journal.skipped) == (2, 2, 2)
    other = tmp_path / "other.csv"
    other.write_text("patient,u,v,y\ncarl,1,2,yes\ncarl,1,2,yes\n")
    assert run(restored, other).journal.samples == 4

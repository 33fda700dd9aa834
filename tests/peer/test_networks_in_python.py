"""A network of peers made in Python, without the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from unused_address import unused_address

import oneway as ow
from oneway.errors import CardError, ConfigError, DataError
from oneway.peer.home.home import Home
from oneway.task.privacy import NO_PRIVACY

PLAIN = {"privacy": NO_PRIVACY, "samples_per_push": 1, "learning_rate": 0.3}
PATIENCE = 240.0


def table(num_rows: int = 60) -> ow.Table:
    rng = np.random.default_rng(3)
    rain, wind = rng.normal(5.0, 2.0, num_rows), rng.normal(size=num_rows)
    late = np.where(rain + wind > 5.0, "yes", "no")
    return ow.Table.from_arrays(
        np.column_stack([rain, wind]),
        late,
        feature_names=["rain", "wind"],
        label_name="late",
        origin={"label": "late"},
    )


def frame() -> polars.DataFrame:
    rows = table()
    return polars.DataFrame(
        {
            "rain": rows.frame["rain"].to_list(),
            "wind": rows.frame["wind"].to_list(),
            "late": [["no", "yes"][int(it > 0)] for it in rows.labels],
            "flight": [f"LH{i}" for i in range(len(rows))],
        }
    )


@pytest.fixture
def task() -> ow.Task:
    return ow.Task.of(table(), **PLAIN)


@pytest.fixture
def alice(tmp_path: Path, task: ow.Task) -> Iterator[ow.Peer]:
    peer = ow.Peer.create(tmp_path / "alice", task, listen=unused_address())
    yield peer
    peer.close()


def test_a_peer_made_in_python_is_one_made_on_the_command_line(alice, tmp_path, task):
    assert alice.name == "alice"
    assert alice.card.startswith("oneway:")
    home = Home.open(tmp_path / "alice")
    assert home.task() == task
    assert str(home.config().card(home.keys().public)) == alice.card
    with pytest.raises(ConfigError, match="never overwritten"):
        ow.Peer.create(tmp_path / "alice", task)


def test_trust_and_admission_are_written_down_and_followed_at_once(alice, tmp_path, task):
    bob = ow.Peer.create(tmp_path / "bob", task)
    alice.trust(bob.card, weight=2.0)
    bob.admit(alice)
    assert [(it.name, it.weight) for it in alice.node.config.receivers] == [("bob", 2.0)]
    assert [it.name for it in Home.open(tmp_path / "bob").config().senders] == ["alice"]
    alice.distrust("bob")
    assert alice.node.config.receivers == ()
    with pytest.raises(CardError):
        alice.trust("nonsense")
    with pytest.raises(ConfigError):
        alice.trust(alice)
    with pytest.raises(ConfigError, match="carol"):
        alice.distrust("carol")
    bob.close()


def as_rows() -> list[dict[str, object]]:
    return frame().to_dicts()


SAMPLES = {
    "polars": frame,
    "pandas": lambda: pandas.DataFrame(frame().to_dict(as_series=False)),
    "table": table,
    "rows": as_rows,
    "pairs": lambda: [({"rain": it["rain"], "wind": it["wind"]}, it["late"]) for it in as_rows()],
    "generator": lambda: (row for row in as_rows()),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_many_samples_are_learned_as_one_after_the_other(kind, tmp_path, task):
    one, many = (ow.Peer.create(tmp_path / name, task) for name in ("one", "many"))
    expected = [one.learn_one(row, row["late"]) for row in as_rows()]
    losses = many.learn_many(SAMPLES[kind]())
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-10:].mean() < losses[:10].mean()
    assert many.node.snapshot.journal.samples == 60
    one.close()
    many.close()


def test_a_bad_sample_is_named_and_those_before_it_stay(alice):
    rows = as_rows()[:5]
    rows[3] = {**rows[3], "rain": "much"}
    with pytest.raises(DataError, match=r"sample 3.*'rain'.*'much'"):
        alice.learn_many(rows)
    assert alice.node.snapshot.journal.samples == 3
    with pytest.raises(DataError, match=r"sample 0.*no 'late'"):
        alice.learn_many(frame().drop("late"))
    with pytest.raises(DataError, match="learn_one"):
        alice.learn_many(as_rows()[0])
    with pytest.raises(DataError, match="sample 0"):
        alice.learn_many([1, 2])
    with pytest.raises(DataError, match="7"):
        alice.learn_many(7)


def test_rows_without_a_label_are_skipped_and_counted(alice):
    rows = as_rows()[:6]
    rows[1], rows[4] = {**rows[1], "late": None}, {**rows[4], "late": ""}
    assert len(alice.learn_many(rows)) == 4
    journal = alice.node.snapshot.journal
    assert (journal.samples, journal.skipped) == (4, 2)
    assert "sample 4" in alice.node.last_skipped
    rows[5] = {**rows[5], "rain": "much"}
    with pytest.raises(DataError, match=r"sample 5.*'much'"):
        alice.learn_many(rows)


def test_two_peers_of_one_notebook_learn_from_each_other(tmp_path, task):
    with ExitStack() as stack:
        alice, bob = (
            ow.Peer.create(tmp_path / name, task, listen=unused_address())
            for name in ("alice", "bob")
        )
        for peer in (alice, bob):
            stack.callback(peer.close)
        alice.trust(bob)
        bob.admit(alice)
        assert alice.start() is alice
        bob.start()
        alice.learn_many(frame())
        deadline = time.monotonic() + PATIENCE
        while not bob.node.estimate.any() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alice.wait_until_quiet(PATIENCE)
        # Bob has seen nothing himself.
        assert bob.status().samples == 0
        assert bob.predict_one({"rain": 12.0, "wind": 0.0}) == "yes"
        assert bob.predict_one({"rain": -2.0, "wind": 0.0}) == "no"
        assert alice.status().receivers[0].acked == alice.status().receivers[0].seq > 0
        shown = alice._repr_html_()
        assert "sends to" in shown
        assert "bob" in shown
    again = ow.Peer(tmp_path / "bob")
    assert again.predict_one({"rain": 12.0, "wind": 0.0}) == "yes"
    again.close()


class Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


def test_a_peer_shows_itself_and_hostile_columns_stay_text(tmp_path):
    hostile = ow.Table.from_arrays(
        np.eye(2), ["<b>", "<i>"], feature_names=["<script>alert(1)</script>", "<img src=x>"]
    )
    task = ow.Task.of(hostile, **PLAIN)
    peer = ow.Peer.create(tmp_path / "alice", task, listen=unused_address())
    for _ in range(3):
        reader = Words()
        reader.feed(peer._repr_html_())
        assert reader.tags <= {"div", "b", "span", "table", "tr", "td", "th", "thead", "tbody"}
        assert "alice" in peer._repr_html_()
        peer.start()
    peer.close()

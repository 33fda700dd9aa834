"""`oneway peer export --model`: the shared model freely, the personal one if its owner says so."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import onnxruntime
import pytest
from starlette.applications import Starlette

from oneway.errors import ConfigError
from oneway.export import FittedModel, PersonalModel
from oneway.peer.api.app import build_app
from oneway.peer.peer import Peer

ROW = {"Temperature": 21.0, "Light": 200.0}
PERSONAL = ("peer", "export", "--model", "personal")


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def learned(oneway: Callable, here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """A peer in the working directory after a run; what it predicts."""
    monkeypatch.delenv("ONEWAY_PEER", raising=False)
    rows = [f"{20 + row % 5},{430 * (row % 3 == 0)},{int(row % 3 == 0)}" for row in range(60)]
    (here / "stream.csv").write_text("\n".join(["Temperature,Light,Occupancy", *rows, ""]))
    for arguments in (
        ("task", "stream.csv", "--label", "Occupancy", "--out", "t.toml"),
        ("init", "alice", "--task", "t.toml"),
        ("run", "--data", "stream.csv", "--until-done"),
    ):
        result = oneway("peer", *arguments)
        assert result.code == 0, result.err

    def predicted(model: str) -> dict[str, float]:
        cells = [f"{name}={value}" for name, value in ROW.items()]
        return oneway("peer", "predict", *cells, "--model", model, "--json").json["probabilities"]

    return predicted


def test_a_personal_file_predicts_what_the_peer_predicts_and_says_what_it_is_made_of(
    oneway, here, learned
):
    for ending in ("json", "onnx"):
        result = oneway(*PERSONAL, "--yes", "--out", f"mine.{ending}")
        assert result.code == 0
        assert "raw samples" in " ".join(result.err.split())
    taken = PersonalModel.load(here / "mine.json")
    assert taken.predict_proba_one(ROW) == learned("personal")
    assert "raw samples" in str(taken.origin["privacy"])
    session = onnxruntime.InferenceSession(here / "mine.onnx")
    about = json.loads(session.get_modelmeta().custom_metadata_map["oneway"])
    assert about["origin"] == taken.origin
    _, found = session.run(None, {name: np.array([[value]]) for name, value in ROW.items()})
    wanted = [list(learned("personal").values())]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_model_and_shared_exports_hand_out_nothing_personal(oneway, here, learned):
    """No name of it, and no number of what its experts have learned."""
    for ending in ("json", "onnx"):
        assert oneway("peer", "export", "--out", f"ours.{ending}").code == 0
    assert FittedModel.load(here / "ours.json").predict_proba_one(ROW) == learned("shared")
    peer = Peer(here)
    with closing(peer):
        measures = peer.node.snapshot.measures
        handed_out = asyncio.run(get(build_app(peer, "127.0.0.1", ""), "/model"))
    experts = [it for name, it in measures.items() if name.startswith("personal.")]
    assert experts
    learned_numbers = {it for array in experts for it in array.reshape(-1).tolist()} - {0.0, 1.0}
    for content in (handed_out, (here / "ours.json").read_bytes()):
        assert learned_numbers.isdisjoint(numbers(json.loads(content)))
    for content in (handed_out, *(path.read_bytes() for path in here.glob("ours.*"))):
        assert b"personal" not in content
        assert b"memory" not in content
        for number in learned_numbers:
            assert np.float64(number).tobytes() not in content


async def get(app: Starlette, path: str) -> bytes:
    url = "http://127.0.0.1:8701"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url) as client:
        answer = await client.get(path)
        assert answer.status_code == 200
        return answer.content


def numbers(value: object) -> set[float]:
    """All in a JSON document."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return set().union(*map(numbers, inside))
    return {float(value)} if isinstance(value, int | float) else set()


@pytest.mark.usefixtures("learned")
def test_a_personal_model_is_written_only_if_its_owner_says_yes(oneway, here, monkeypatch):
    oneway(*PERSONAL, "--out", "mine.json").check_refused(ConfigError, "raw samples", "--yes")
    for answer, written in (("n\n", False), ("y\n", True)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        result = oneway(*PERSONAL, "--out", "mine.json")
        assert (result.code == 0) == written
        assert (here / "mine.json").exists() == written


@pytest.mark.usefixtures("learned")
def test_a_model_that_there_is_not_gets_a_sentence(oneway, here):
    for flags, culprit in (
        (("--model", "mine"), "mine"),
        (("--model", "personal", "--momentary"), "--momentary"),
        (("--model", "personal", "--yes", "--format", "state-dict"), "state dict"),
    ):
        oneway("peer", "export", *flags).check_refused(ConfigError, culprit)
    assert not list(here.glob("alice.*"))

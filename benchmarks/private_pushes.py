"""CPU time of a push with its samples: every sample as it is, batches, and batches with noise.

One sender with a real store and one receiver, without sockets and without waiting, taking turns in
one run: 16 samples are learned from, then everything is made durable and encoded, and the answer is
taken in. Prints the sender's CPU time, and what privacy adds to the same push without it.

    python benchmarks/private_pushes.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from oneway.peer.node import Frame
from oneway.peer.peer import Peer
from oneway.transport.base import Arrival
from pushes import FEATURES, make_peers

SAMPLES = 16
KINDS = {
    "batches without noise": 'privacy = "none"',
    "epsilon 8, independent noise": "privacy = { epsilon = 8, band = 1 }",
    "epsilon 8, the default": "privacy = { epsilon = 8 }",
}
TURNS = 8
PUSHES_A_TURN = {20: 60, 10_000: 12}


class Sender:
    """A sender and its receiver, both with stores of their own."""

    def __init__(self, folder: Path, dim: int, privacy: str, closing_with: ExitStack) -> None:
        folder.mkdir()
        homes = make_peers(folder, dim, privacy)
        self.peer, self.other = (
            closing_with.enter_context(closing(Peer(home.folder))) for home in homes
        )
        self.x = {f"x{index}": 0.01 * index for index in range(FEATURES[dim])}
        self.seconds = 0.0
        self.pushes = 0

    def push(self) -> None:
        """Learn, commit, encode, and take in the answer; only the sender is measured."""
        began = time.process_time()
        for _ in range(SAMPLES):
            self.peer.node.learn(self.x, "1")
        said = _committed(self.peer)
        self.seconds += time.process_time() - began
        while said:
            answers = _carried(self.peer, self.other, said)
            began = time.process_time()
            said = _carried(self.other, self.peer, answers)
            self.seconds += time.process_time() - began
        self.pushes += 1


def _carried(source: Peer, target: Peer, frames: Iterable[Frame]) -> list[Frame]:
    for frame in frames:
        via = "push" if frame.via == "push" else "reply"
        target.node.take(Arrival(source.node.key, frame.content, via))
    return _committed(target)


def _committed(peer: Peer) -> list[Frame]:
    batch = peer.node.begin()
    if batch is None:
        return []
    if not peer.node.is_durable(batch):
        peer._store.commit(batch.snapshot)
    return peer.node.committed(batch)


def main() -> None:
    """Measure all kinds at both sizes."""
    for dim, pushes in PUSHES_A_TURN.items():
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            senders = {
                name: Sender(folder / str(place), dim, text, stack)
                for place, (name, text) in enumerate(KINDS.items())
            }
            for sender in senders.values():  # warm up
                sender.push()
                sender.seconds, sender.pushes = 0.0, 0
            best = dict.fromkeys(KINDS, float("inf"))
            for _ in range(TURNS):
                for name, sender in senders.items():
                    before = sender.seconds
                    for _ in range(pushes):
                        sender.push()
                    best[name] = min(best[name], (sender.seconds - before) / pushes)
            seqs = {
                name: max(edge.seq for edge in sender.peer.node.snapshot.state.out.values())
                for name, sender in senders.items()
            }
        plain = next(iter(best.values()))
        for name, seconds in best.items():
            print(
                f"{dim:>7,} parameters  {name:<30} {1e3 * seconds:>8.3f} ms CPU a push "
                f"({seqs[name]} pushes)   {seconds / plain:.2f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()

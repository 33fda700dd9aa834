"""States to be stored: of three peers to which anything happens, and of a pair of large ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass

import msgspec
import numpy as np
from hypothesis import strategies as st

from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.protocol.incoming import mint
from oneway.protocol.outgoing import answer, receipts, remind, report, say
from oneway.protocol.replies import receive_receipt, receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import (
    descend,
    distrust,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    stay,
    trust,
)

DIM = 3


def receiver(number: int) -> bytes:
    return bytes([number + 1]) * 32


FORGOTTEN = ("former_lives",)
"""What a state has, and may be forgotten with a restart."""


def facts(value: object) -> object:
    """A frozen value as plain ones, arrays included, so that == means all of it."""
    if isinstance(value, np.ndarray):
        assert value.dtype == np.int64
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: facts(item) for name, item in value.items()}
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name not in FORGOTTEN]
        return type(value), [facts(getattr(value, name)) for name in names]
    if is_dataclass(value):
        return type(value), [facts(getattr(value, field.name)) for field in fields(value)]
    return value


class LittleNetwork:
    """Three peers to which anything can happen; numbers say what."""

    def __init__(self) -> None:
        self.rules = [Rules(bytes([i]) * 32, window=3, clip=0.5) for i in range(3)]
        self.keys = [receiver(i) for i in range(3)]
        self.states = [PeerState.new(DIM, ledger=i + 1, boot=1 << 20) for i in range(3)]
        self.epoch = 0
        self.saved = list(self.states)

    def step(self, event: str, one: int, other: int, amount: float) -> None:
        state = self.states[one]
        match event:
            case "learn" if state.mass > 0:
                state = descend(state, np.array([amount, 0.0, -amount]) * state.mass)
            case "mint" if not state.has_minted:
                state = mint(state, np.array([amount, 1.0, 2.0]))
            case "push":
                state = push(state, dict.fromkeys(self.keys, 0.3), self.rules[one])
            case "trust" if one != other:
                self.epoch += 1
                state = trust(state, self.keys[other], self.epoch)
            case "distrust":
                state = distrust(state, self.keys[other])
            case "presume dead" if state.out:
                state = presume_dead(state, list(state.out)[other % len(state.out)])
            case "leave" if amount > 0.3:
                state = leave(state)
            case "leave":
                state = stay(state)
            case "restart":
                state = restart(state, 0)
            case "save":
                self.saved[one] = state
            case "old backup":
                state = restart(self.saved[one], 0)
        self.states[one] = state
        if event == "talk":
            self.talk(one, amount)

    def talk(self, one: int, amount: float) -> None:
        """Say all there is to say; some answers, and some questions, get lost."""
        state = self.states[one]
        told = [(edge.receiver, say(state, edge, self.rules[one])) for edge in state.out.values()]
        told += [
            (end.receiver, remind(state, end, self.rules[one])) for end in state.settled.values()
        ]
        for key, message in told:
            other = self.keys.index(key)
            heard = receive_push(self.states[other], self.keys[one], message, self.rules[other])
            self.states[other] = heard.state
            if amount > -0.3:
                replies = answer(heard.state, self.keys[one], message, self.rules[other])
                self.reply(other, one, list(replies))
        for edge in state.in_.values():
            self.reply(one, self.keys.index(edge.sender), [report(state, edge, self.rules[one])])
        for receipt in list(receipts(state, self.keys[one], self.rules[one])):
            for other in {0, 1, 2} - {one}:
                self.states[other] = receive_receipt(
                    self.states[other], self.keys[other], self.keys[one], receipt, self.rules[other]
                )

    def reply(self, one: int, other: int, replies: list) -> None:
        for reply in replies:
            done = receive_reply(self.states[other], self.keys[one], reply, self.rules[other])
            self.states[other] = done.state


EVENTS = ["learn", "mint", "push", "push", "talk", "talk", "talk", "trust", "distrust"]
EVENTS += ["presume dead", "leave", "restart", "save", "old backup", "commit", "commit"]

steps = st.tuples(
    st.sampled_from(EVENTS), st.integers(0, 2), st.integers(0, 2), st.floats(-0.5, 0.5)
)


KEYS = (b"a" * 32, b"b" * 32)


@dataclass
class Pair:
    """A sender and a receiver of compact pushes, of a model of this size."""

    dim: int
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def __post_init__(self) -> None:
        self.rules = [Rules(bytes([i]) * 32, window=1, clip=0.5, compact=True) for i in (1, 2)]
        self.states = [
            mint(PeerState.new(self.dim, ledger=i, boot=1 << 20), np.zeros(self.dim))
            for i in (1, 2)
        ]
        self.states[0] = trust(self.states[0], KEYS[1], epoch=1 << 21)
        self.talk()

    def learn_and_push(self) -> None:
        step = 1e-3 * self.rng.standard_normal(self.dim)
        state = descend(self.states[0], step)
        self.states[0] = push(state, {KEYS[1]: 0.01}, self.rules[0])

    def talk(self) -> None:
        [edge] = self.states[0].out.values()
        told = say(self.states[0], edge, self.rules[0])
        self.states[1] = receive_push(self.states[1], KEYS[0], told, self.rules[1]).state
        for reply in answer(self.states[1], KEYS[0], told, self.rules[1]):
            self.states[0] = receive_reply(self.states[0], KEYS[1], reply, self.rules[0]).state


def counted(state: PeerState, samples: int) -> Snapshot:
    return Snapshot(state, Journal(samples))

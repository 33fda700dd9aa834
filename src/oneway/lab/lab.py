"""A lab: the peers of a problem as real processes on this machine, and what one can do to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from oneway.errors import ConfigError, OnewayError
from oneway.lab.audit import Audit, audit
from oneway.lab.peers import Peers
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.lab.rest import Rest
from oneway.lab.setup import TASK_FILE, make_member, make_members
from oneway.peer.home.limits import Faults
from oneway.records import Ints
from oneway.sentences import listed

DRAIN_SECONDS = 60.0
POLL_SECONDS = 0.1


class Lab(Peers):
    """Real peers on loopback. Leave it with `close`, or use it in a `with` block.

    Peers are numbered as the nodes of the problem's graph; peers that are added get the next
    numbers. A peer that is killed stays down until `restart`, for good if it never comes.

    Attributes:
        problem: What the peers were made for.
        members: Their folders and cards.
        events: What was done to them, in sentences.
        loss: The share of messages that are lost on purpose.
        is_rewired: Whether trust has been changed, or somebody has joined.
    """

    def __init__(
        self,
        folder: Path,
        problem: Problem,
        *,
        rate: float = 0.0,
        run: Sequence[str] | None = None,
        forgiving: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Make the peers' folders; `start` starts them.

        Args:
            folder: A new or empty folder.
            problem: What is learned, by whom.
            rate: Samples per second of each peer; 0 for as many as it can.
            run: The command that runs a peer, if it is not `oneway peer run`.
            forgiving: Whether a peer that ends by itself is an event instead of an error.
            clock: Seconds that only grow.
            sleep: How to wait.

        Raises:
            ConfigError: If the folder cannot be used, or a rate or share is no such thing.
        """
        if not 0.0 <= rate < float("inf"):
            raise ConfigError(f"rate is {rate:g} samples per second; it must be 0 or more")
        self.problem = problem
        self.loss = 0.0
        self.is_rewired = False
        self._folder = folder
        self._sleep = sleep
        self._ports = Ports()
        try:
            members = make_members(folder, problem, self._ports.reserve)
        except BaseException:
            self._ports.close()
            raise
        super().__init__(members, rate=rate, run=run, forgiving=forgiving, clock=clock)

    def close(self) -> None:
        """Leave no process behind, and give the ports back."""
        try:
            super().close()
        finally:
            self._ports.close()

    # Trust and faults; running peers follow within a moment. Each says what was done.

    def set_loss(self, loss: float) -> str:
        """Let every peer lose this share of the messages it sends, newcomers included.

        Raises:
            ConfigError: If it is not from 0 to 1.
        """
        for peer in range(len(self.members)):
            self._set_loss(peer, loss)
        self.loss = loss
        return self.note(f"from now on {100 * loss:g}% of the messages are lost")

    def cut(self, one: int, other: int) -> str:
        """Let nothing pass between two peers."""
        # At the end that admits the other: it still knows it when trust between them has ended,
        # and can undo the cut.
        turned = not self._admits(one, other) and self._admits(other, one)
        at, against = (other, one) if turned else (one, other)
        self._set_cut(at, lambda cut: cut | {self._name(against)})
        return self.note(f"the line between {self._name(one)} and {self._name(other)} was cut")

    def heal(self, one: int, other: int) -> str:
        """Undo `cut`."""
        self._set_cut(one, lambda cut: cut - {self._name(other)})
        self._set_cut(other, lambda cut: cut - {self._name(one)})
        return self.note(f"the line between {self._name(one)} and {self._name(other)} was healed")

    def trust(self, sender: int, receiver: int, weight: float | None = None) -> str:
        """Let one peer send to another, which admits it.

        Args:
            sender: Who sends.
            receiver: To whom.
            weight: Among the sender's receivers; None for what the others have on average.

        Raises:
            ConfigError: If the weight is no weight.
        """
        self._trust(sender, receiver, weight)
        self.is_rewired = True
        return self.note(f"{self._name(sender)} now sends to {self._name(receiver)}")

    def distrust(self, sender: int, receiver: int) -> str:
        """Let one peer send nothing more to another; what did not arrive comes back.

        Raises:
            ConfigError: If it does not send to it.
        """
        name = self._name(receiver)
        self.members[sender].change(lambda config: config.without_receiver(name))
        self.is_rewired = True
        return self.note(f"{self._name(sender)} no longer sends to {name}")

    def add_peer(
        self, name: str, rows: Ints, *, receivers: Sequence[int] = (), senders: Sequence[int] = ()
    ) -> str:
        """Let a newcomer join; it gets the next number.

        Args:
            name: What it is called; no other peer may be called so.
            rows: The rows of the problem's table that it learns from.
            receivers: Whom it sends to.
            senders: Who sends to it.

        Raises:
            ConfigError: If there is a peer of that name, or the name cannot be used.
        """
        member = make_member(
            self._folder / name,
            self._folder / TASK_FILE,
            self._ports.reserve(),
            self.problem.table,
            rows,
        )
        number = len(self.members)
        self.members.append(member)
        self._processes.append(self._process(member))
        self._set_loss(number, self.loss)
        for receiver in receivers:
            self._trust(number, receiver)
        for sender in senders:
            self._trust(sender, number)
        self._processes[number].start()
        self.is_rewired = True
        return self.note(
            f"{name} joined with {len(rows):,} samples{self._relations(receivers, senders)}"
        )

    # The end.

    def drain(
        self, seconds: float = DRAIN_SECONDS, meanwhile: Callable[[], None] = lambda: None
    ) -> bool:
        """Let everything arrive: all faults end, nobody learns or pushes any more.

        Args:
            seconds: How long to wait for it.
            meanwhile: Called again and again while waiting.

        Returns:
            Whether the peers that run came to rest within so many seconds.
        """
        for member in self.members:
            member.change(lambda config: replace(config, paused=True, faults=Faults()))
        self.loss = 0.0
        self.note("the peers were paused, to let everything arrive")
        deadline = self._clock() + seconds
        down = self.down
        rest = Rest(down)
        while not (rest.seen_in(self.statuses()) and rest.stored_in(self.snapshots())):
            if self._clock() >= deadline:
                self.note(f"the network did not come to rest within {seconds:g} s")
                return False
            if self.down != down:  # one more has ended by itself: nobody will hear from it
                down = self.down
                rest = Rest(down)
            meanwhile()
            self._sleep(POLL_SECONDS)
        self.note(f"nothing is in flight any more{' between peers that run' if down else ''}")
        return True

    def audit(self) -> Audit:
        """Add up what all stores hold; to be called after `drain` and `stop`.

        Raises:
            StoreError: If a store is damaged.
            OnewayError: If there is no store at all.
        """
        found = self.snapshots()
        if not found:
            raise OnewayError("there is nothing to audit: no peer ever had a store")
        return audit(found, self.down)

    # Details.

    def _name(self, peer: int) -> str:
        return self.members[peer].name

    def _relations(self, receivers: Sequence[int], senders: Sequence[int]) -> str:
        said = ""
        if receivers:
            said += f", sends to {listed(map(self._name, receivers))}"
        if senders:
            said += f", hears from {listed(map(self._name, senders))}"
        return said

    def _trust(self, sender: int, receiver: int, weight: float | None = None) -> None:
        giver, taker = self.members[sender], self.members[receiver]
        if weight is None:
            weights = [known.weight for known in giver.home.config().receivers]
            weight = sum(weights) / len(weights) if weights else 1.0
        taker.change(lambda config: config.with_sender(giver.card, own_key=taker.key))
        giver.change(lambda config: config.with_receiver(taker.card, weight, own_key=giver.key))

    def _admits(self, receiver: int, sender: int) -> bool:
        key = self.members[sender].key
        return any(known.key == key for known in self.members[receiver].home.config().senders)

    def _set_loss(self, peer: int, loss: float) -> None:
        self.members[peer].change(
            lambda config: replace(config, faults=replace(config.faults, loss=loss))
        )

    def _set_cut(self, peer: int, cut: Callable[[set[str]], set[str]]) -> None:
        self.members[peer].change(
            lambda config: replace(
                config,
                faults=replace(config.faults, cut=tuple(sorted(cut(set(config.faults.cut))))),
            )
        )

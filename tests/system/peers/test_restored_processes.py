"""A real peer that is restored from a copy of its folder learns no row of its file twice."""

from __future__ import annotations

import shutil

import numpy as np
from real_peers import PATIENCE, Town, admit, learned, trust, types, until, until_learned

from oneway.lab.peer_folders import make_peer
from oneway.lab.peer_process import PeerProcess, peer_command
from oneway.task.privacy import Privacy

NUM_ROWS = 360
RATE = 60.0


def test_a_peer_restored_from_a_copy_of_its_folder_learns_every_row_once(tmp_path):
    with Town(tmp_path, privacy=Privacy(), samples_per_push=16) as town:
        bob = town.peer("bob", 20_000)
        made = make_peer(tmp_path / "alice", town.address(), town.table, np.arange(NUM_ROWS))
        alice = PeerProcess(made.home, RATE, peer_command(), niceness=0)
        town.callback(alice.kill)
        admit(bob, alice)
        admit(alice, bob)
        trust(alice, bob)
        trust(bob, alice)
        for peer in (alice, bob):
            peer.start()
        until_learned(alice, 40)
        stop(alice)
        backup = shutil.copytree(alice.home.folder, tmp_path / "backup")
        remembered = learned(alice)[0]
        alice.start()
        until_learned(alice, 80)
        stop(alice)
        told = bob.snapshot().state.heard_progress[alice.key].learned
        assert told > remembered
        shutil.rmtree(alice.home.folder)
        shutil.copytree(backup, alice.home.folder)
        stop(bob)
        alice.start()
        until(
            lambda: (status := alice.status()) is not None and status.waits_for == ["bob"],
            "alice waits for bob",
        )
        assert learned(alice)[0] == remembered
        waits = types(alice, "status")
        assert "learns no row before bob has told how far its stream had come" in waits
        bob.start()
        until(lambda: (status := alice.status()) is not None and status.finished, "she is done")
        journal = alice.snapshot().journal
        assert journal.forgotten == told - remembered
        assert journal.samples == NUM_ROWS - journal.forgotten
        assert journal.position.num_rows == NUM_ROWS
        sentence = f"{journal.forgotten} rows were learned in a life that this backup does not"
        assert sentence in types(alice, "status")
        assert sentence in " ".join(alice.log_path.read_text().split())


def stop(peer: PeerProcess) -> None:
    peer.ask_to_stop()
    assert peer.wait(PATIENCE)

"""What an attacker beside a peer reads from its frames, in full and in codes."""

from __future__ import annotations

import numpy as np
import pytest

from oneway.audit.lab import Mail
from oneway.protocol.compact import nothing, pack, unpack
from oneway.protocol.fixed_point import ONE, zeros
from oneway.protocol.layout import Layout
from oneway.protocol.messages import NO_PROGRESS, Ack, Compact, Data, Life
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.records import Segment
from oneway.transport.wire import encode

LAYOUT = Layout.of([Segment("numerator", "split")], dim=5)
TASK = b"the task of tests"
ABOUT = 7, Life(1, 0, False, NO_TAG), 2, 3, 4


@pytest.mark.parametrize("code", ["int8", "int4"])
def test_the_audit_reads_the_totals_of_compact_pushes(code):
    rng = np.random.default_rng(0)
    totals = {1: zeros(5), 2: (np.append(rng.normal(size=5), 1.0) * ONE).astype(np.int64)}
    frames = [compact(1, nothing(LAYOUT, totals[1], 0, code), totals[1])]
    frames.append(encode(Data(*ABOUT, 2, totals[2], NO_TAG, NO_PROGRESS), TASK))
    for seq in range(3, 6):
        part = (np.append(rng.normal(size=5), 0.5) * ONE).astype(np.int64)
        packed = pack(LAYOUT, part, seq - 1, totals[seq - 1], code, 1000.0)
        totals[seq] = unpack(LAYOUT, totals[seq - 1], packed)
        frames.append(compact(seq, packed, totals[seq]))
    frames.append(compact(5, nothing(LAYOUT, totals[5], 5, code), totals[5]))
    unseen = nothing(LAYOUT, totals[5], 8, code)
    frames += [frames[2], compact(9, unseen, totals[5])]
    mail = Mail(LAYOUT)
    for frame in frames:
        mail.note_received(frame)
        mail.note_sent(frame)
        mail.note_received(encode(Ack(*ABOUT[:2], 3, NO_TAG, NO_TAG), TASK))
    for read in (mail.received, mail.sent):
        assert {seq: total.tolist() for seq, total in read.items()} == {
            seq: total.tolist() for seq, total in totals.items()
        }
    assert mail.acked == {1: 0, 2: 3, 3: 3, 4: 3, 5: 3}


def compact(seq, packed, total):
    return encode(Compact(*ABOUT, seq, packed, digest_of(total), NO_TAG, NO_PROGRESS), TASK)

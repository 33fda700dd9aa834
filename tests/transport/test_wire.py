"""Frames from the network become a message or a `WireError`, and nothing else happens."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oneway
from oneway.errors import WireError
from oneway.protocol.compact import Packed
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Close,
    Closed,
    Compact,
    Data,
    Gone,
    Hello,
    Life,
    Progress,
    Receipt,
    Retired,
    Stale,
    State,
    Superseded,
)
from oneway.protocol.tags import SIZE
from oneway.transport.wire import VERSION, Foreign, OtherVersion, Versions, decode, encode

TASK = b"sixteen bytes :)"
LARGEST = 2**62

numbers = st.integers(0, LARGEST - 1)
tags = st.binary(min_size=SIZE, max_size=SIZE)
totals = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20).map(
    lambda units: np.array(units, dtype=np.int64)
)
keys = st.binary(min_size=32, max_size=32)
lives = st.builds(Life, numbers, numbers, st.booleans(), tags)
progress = st.builds(Progress, numbers, st.binary(max_size=64))
packed = st.builds(
    Packed,
    numbers,
    totals,
    st.booleans(),
    st.binary(max_size=9),
    st.binary(max_size=99),
)
messages = st.one_of(
    st.builds(Data, numbers, lives, numbers, numbers, numbers, numbers, totals, tags, progress),
    st.builds(Hello, numbers, lives, numbers, numbers),
    st.builds(Close, numbers, lives, numbers, numbers, totals, tags, progress),
    st.builds(Ack, numbers, lives, numbers, tags, tags),
    st.builds(State, numbers, lives, numbers, numbers, numbers, numbers, totals, tags, progress),
    st.builds(
        Compact, numbers, lives, numbers, numbers, numbers, numbers, packed, tags, tags, progress
    ),
    st.builds(Closed, numbers, lives, numbers, totals, tags, progress),
    st.builds(Stale, numbers, lives),
    st.builds(Gone, numbers, lives, numbers, progress),
    st.builds(Retired, numbers, lives, numbers, progress),
    st.builds(Superseded, numbers, lives, lives),
    st.builds(Receipt, numbers, lives, keys, keys, numbers, tags, tags),
    st.builds(Foreign, st.binary(max_size=100)),
    st.builds(Versions, st.lists(st.integers(0, 2**32), max_size=16).map(tuple)),
)

A_TAG = bytes(range(SIZE))
A_TOTAL = np.array([1, -2, 3])
A_PACKED = Packed(4, A_TOTAL, True, b"\x07", b"\x01\x02\xff")
A_LIFE = Life(8, 9, False, A_TAG)
ONE_OF_EACH = [
    Data(1, A_LIFE, 2, 3, 4, 5, A_TOTAL, A_TAG, NO_PROGRESS),
    Compact(1, A_LIFE, 2, 3, 4, 5, A_PACKED, A_TAG, A_TAG, NO_PROGRESS),
    Hello(1, A_LIFE, 2, 3),
    Close(1, A_LIFE, 2, 3, A_TOTAL, A_TAG, NO_PROGRESS),
    Ack(1, A_LIFE, 2, A_TAG, A_TAG),
    State(1, A_LIFE, 2, 3, 4, 5, A_TOTAL, A_TAG, NO_PROGRESS),
    Closed(1, A_LIFE, 2, A_TOTAL, A_TAG, NO_PROGRESS),
    Stale(1, A_LIFE),
    Gone(1, A_LIFE, 2, NO_PROGRESS),
    Retired(1, A_LIFE, 2, NO_PROGRESS),
    Superseded(1, A_LIFE, Life(18, 19, True, A_TAG)),
    Receipt(1, A_LIFE, bytes(32), bytes(range(32)), 2, A_TAG, A_TAG),
    Foreign(b"{}"),
]


def parts(message):
    """The fields of a message in terms that can be compared."""
    values = (getattr(message, name) for name in message.__struct_fields__)
    return [
        value.tolist()
        if isinstance(value, np.ndarray)
        else parts(value)
        if isinstance(value, Packed)
        else value
        for value in values
    ]


def plain(message):
    """A message as the lists, numbers and bytes that travel."""
    return msgspec.msgpack.decode(encode(message, TASK))[2]


def framed(body, version=VERSION, task=TASK):
    return msgspec.msgpack.encode([version, task, body])


def refused(frame):
    """The sentence with which a frame is refused."""
    with pytest.raises(WireError) as error:
        decode(frame)
    return str(error.value)


@given(messages, st.binary(max_size=32))
def test_every_message_comes_back_as_it_went(message, task):
    fingerprint, back = decode(encode(message, task))
    assert fingerprint == task
    assert type(back) is type(message)
    assert parts(back) == parts(message)


def test_an_array_travels_as_raw_little_endian_bytes_whatever_the_machine_is():
    native = encode(Closed(1, A_LIFE, 2, A_TOTAL, A_TAG, NO_PROGRESS), TASK)
    foreign = encode(Closed(1, A_LIFE, 2, A_TOTAL.astype(">i8"), A_TAG, NO_PROGRESS), TASK)
    assert native == foreign
    assert A_TOTAL.astype("<i8").tobytes() in native
    _, back = decode(native)
    assert back.total.dtype == np.int64
    assert (back.total + 1).tolist() == [2, -1, 4]


# Whatever arrives.


@given(st.binary(max_size=400))
@example(b"")
@example(b"\xc1")
@example(b"\x93\x01\xc4\x01t\xdd\xff\xff\xff\xff")
def test_any_bytes_are_a_message_or_a_wire_error(frame):
    try:
        task, message = decode(frame)
    except WireError:
        return
    assert isinstance(task, bytes)
    if not isinstance(message, OtherVersion):
        assert decode(encode(message, task))[0] == task


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=10)
    | st.binary(max_size=20)
    | st.sampled_from(["data", "hello", "close", "ack", "state", "closed", "stale", "gone"])
    | st.sampled_from(["retired", "superseded", "receipt"])
    | st.just([8, 9, False, A_TAG]),
    lambda inner: (
        st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(st.sampled_from(ONE_OF_EACH), st.data())
def test_a_message_with_one_field_replaced_by_anything_is_checked(message, data):
    fields = plain(message)
    index = data.draw(st.integers(0, len(fields) - 1))
    fields[index] = data.draw(anything)
    try:
        _, back = decode(framed(fields))
    except WireError:
        return
    assert type(back) in {type(one) for one in ONE_OF_EACH}
    check_fields(back)


def check_fields(back):
    for name in back.__struct_fields__:
        value = getattr(back, name)
        if name == "leaving":
            assert isinstance(value, bool)
        elif isinstance(value, int):
            assert 0 <= value < LARGEST
        elif isinstance(value, Life):
            check_fields(value)
        elif name in ("tag", "digest", "proof"):
            assert len(value) == SIZE
        elif name in ("receiver", "sender"):
            assert len(value) == 32
        elif name == "total":
            assert value.dtype == np.int64
            assert value.ndim == 1
            assert value.size > 0


@pytest.mark.parametrize("depth", [10, 1000, 100_000])
def test_nesting_without_end_is_refused(depth):
    for opened in (b"\x91", b"\x81\xa1x", b"\x81"):
        nested = opened * depth
        refused(nested)
        refused(b"\x93\x01\xc4\x01t" + nested)
        refused(b"\x93\x01\xc4\x01t\x94\xa5hello" + nested)


# What exactly is refused, and with which words.


@pytest.mark.parametrize("version", [2, 99, 2**63, -1])
@pytest.mark.parametrize("body", [["hello", 1, 2, 3], {"anything": [1]}, None])
def test_a_message_of_another_version_is_told_apart_from_rubbish(version, body):
    task, message = decode(framed(body, version=version))
    assert (task, message) == (TASK, OtherVersion(version))


def test_which_versions_a_peer_speaks_is_said_in_a_frame_that_is_the_same_for_ever():
    assert encode(Versions((1, 2)), TASK) == msgspec.msgpack.encode([0, TASK, [1, 2]])
    assert decode(framed([1, 7], version=0)) == (TASK, Versions((1, 7)))


@pytest.mark.parametrize("number", [-1, LARGEST, 2**63, 2**64 - 1, -(2**63)])
def test_counters_that_one_more_could_overflow_are_refused(number):
    for message in ONE_OF_EACH:
        fields = plain(message)
        for index, value in enumerate(fields):
            if isinstance(value, int):
                wrong = [*fields[:index], number, *fields[index + 1 :]]
                # Where in the message: its tag is element 0.
                assert f"$[{index}]" in refused(framed(wrong))
            if isinstance(value, list):  # a life
                for place in (0, 1):
                    life = [*value[:place], number, *value[place + 1 :]]
                    wrong = [*fields[:index], life, *fields[index + 1 :]]
                    assert f"$[{index}][{place}]" in refused(framed(wrong))


LIFE = [8, 9, False, A_TAG]
REFUSED = {
    "a short tag": ["ack", 1, LIFE, 2, A_TAG, A_TAG[:-1]],
    "a long digest": ["ack", 1, LIFE, 2, A_TAG + b".", A_TAG],
    "a short proof": ["ack", 1, [8, 9, False, A_TAG[1:]], 2, A_TAG, A_TAG],
    "a short key": ["receipt", 1, LIFE, bytes(31), bytes(32), 2, A_TAG, A_TAG],
    "a long mark of progress": ["gone", 1, LIFE, 2, [3, bytes(65)]],
    "no life": ["stale", 1, None],
    "half a life": ["stale", 1, LIFE[:2]],
    "no array": ["closed", 1, LIFE, 2, b"", A_TAG, [0, b""]],
    "an array of 9 bytes": ["closed", 1, LIFE, 2, bytes(9), A_TAG, [0, b""]],
    "an array as a list": ["closed", 1, LIFE, 2, [1, 2, 3], A_TAG, [0, b""]],
    "control characters": ["\x1b[31m\nhacked" * 10_000, 1, 2],
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_a_malformed_field_is_refused_in_a_short_printable_sentence(body):
    sentence = refused(framed(body))
    assert len(sentence) < 500
    assert sentence.isprintable()


@pytest.mark.parametrize("message", ONE_OF_EACH, ids=lambda message: type(message).__name__)
def test_a_message_has_exactly_its_fields(message):
    fields = plain(message)
    decode(framed(fields))
    refused(framed(fields[:-1]))
    refused(framed([*fields, 0]))
    refused(msgspec.msgpack.encode([VERSION, TASK, fields, "more"]))
    refused(encode(message, TASK) + b"\x00")


@pytest.mark.parametrize("value", [1.0, True, None, "1", b"1", [1], {}])
def test_only_an_integer_is_an_integer(value):
    life = [8, 9, False, A_TAG]
    decode(framed(["hello", 1, life, 2, 3]))
    refused(framed(["hello", 1, life, 2, value]))
    refused(msgspec.msgpack.encode([value, TASK, ["hello", 1, life, 2, 3]]))


# No pickle.

EXECUTES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", ["protocol", "transport", "peer"])
def test_nothing_that_could_execute_what_arrives_is_imported_or_called(package):
    root = Path(oneway.__file__).parent / package
    files = sorted(root.rglob("*.py"))
    assert files
    for path in files:
        assert not EXECUTES & set(imported_by(path)), path
        source = path.read_text(encoding="utf-8")
        for call in ("eval(", "exec(", "allow_pickle", "recv_pyobj", "send_pyobj", "np.load("):
            assert call not in source, (path, call)

from __future__ import annotations

import asyncio
import csv
import io
import os
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.peer.samples import (
    CHUNK_BYTES,
    MAX_PIECES_AHEAD,
    pace,
    rows,
)
from oneway.tables.cells import SPACES
from oneway.tables.rows import (
    MAX_LINE_BYTES,
    START,
    BadRow,
    Position,
    Row,
    RowReader,
    check_columns,
)

T = TypeVar("T")
Item: TypeAlias = Row | BadRow

PATIENCE = 240.0
POLL = 0.005


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


async def collect(path: str, **options: Any) -> list[Item]:
    async with asyncio.timeout(PATIENCE):
        return [item async for item in rows(path, **options)]


def read(path: str, **options: Any) -> list[Item]:
    return asyncio.run(collect(path, **options))


def read_text(text: str | bytes, **options: Any) -> list[Item]:
    with tempfile.TemporaryDirectory() as folder:
        return read(write(Path(folder) / "samples", text), **options)


def values_of(items: list[Item]) -> list[dict[str, object]]:
    assert all(isinstance(item, Row) for item in items), items
    return [dict(item.values) for item in items if isinstance(item, Row)]


def only(items: list[Item], kind: type[T]) -> T:
    (found,) = [item for item in items if isinstance(item, kind)]
    return found


# What a row is


def test_a_csv_file_gives_its_cells_as_text_under_the_names_in_its_header() -> None:
    items = read_text("height,mood\n1.5,good\n,x\n")
    assert values_of(items) == [{"height": "1.5", "mood": "good"}, {"height": "", "mood": "x"}]
    assert [item.line for item in items] == [2, 3]
    assert [item.position.num_rows for item in items] == [1, 2]
    assert [item.position.offset for item in items] == [21, 24]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separator_line_ends_and_byte_order_mark_are_found_out(
    separator: str, line_end: str, mark: str
) -> None:
    lines = [["a", "b, or ;", "c"], ["1", 'say "x"', "3"], ["4", "", "6"]]
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=line_end).writerows(lines)
    items = read_text(mark + text.getvalue())
    assert values_of(items) == [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_json_lines_give_json_values() -> None:
    items = read_text('\ufeff\n{"a": 1, "b": [true, null]}\r\n\n{"b": "é"}')
    assert values_of(items) == [{"a": 1, "b": [True, None]}, {"b": "é"}]
    assert [item.line for item in items] == [2, 4]


CELLS = st.text(st.sampled_from('ab1é ",;\t\r\u2028'), max_size=6)


@given(
    rows_of_cells=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_cells_are_read_as_the_csv_module_wrote_them(
    rows_of_cells: list[tuple[str, str, str]], line_end: str
) -> None:
    text = io.StringIO()
    # Without all in quotes, the csv module writes a bare \r that its own reader refuses.
    writer = csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y", "z"), *rows_of_cells])
    reader = RowReader("text")
    found = [*reader.feed(text.getvalue().encode()), *reader.finish()]
    said = [cells for cells in rows_of_cells if "".join(cells).strip(SPACES)]
    assert [tuple(values.values()) for values in values_of(found)] == said


# Rows that cannot be parsed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1,2,3\n", "it has 3 cells, but the header has 2 columns"),
        (b"1,\0\n", "it holds bytes that are not text"),
        (b'"1,2\n', "a quote in it is not closed on its line; write text with line breaks as JSON"),
        (b"1,2\r3\n", "it has a carriage return outside quotes that ends no line"),
        (b"1," + b"x" * 200_000 + b"\n", "a cell in it is longer than 131,072 characters"),
        (b"1," + b"x" * MAX_LINE_BYTES + b"\n", "it is longer than 1,048,576 bytes"),
    ],
    ids=[
        "too many",
        "not text",
        "open quote",
        "bare \\r",
        "long cell",
        "too long",
    ],
)
def test_a_bad_csv_row_is_named_and_the_next_one_is_read(line: bytes, reason: str) -> None:
    first, bad, last = read_text(b"a,b\n1,2\n" + line + b"3,4\n")
    assert values_of([first, last]) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    assert isinstance(bad, BadRow)
    assert bad.line == 3
    assert bad.reason.startswith(reason)
    assert last.line == 3 + line.count(b"\n")
    assert last.position.num_rows == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": 1\n', "it is not a JSON object (Input data was truncated)"),
        (b'{"a": NaN}\n', "it is not a JSON object"),
        (b"a,b\n", "it is not a JSON object"),
        (b"[1]\n", 'it is JSON, but not an object such as {"height": 1.5}'),
        (b'{"a": "\xff"}\n', "it holds bytes that are not UTF-8 text"),
        (b'{"a":' + b"[" * 100_000 + b"\n", "it is nested too deeply"),
        (b'{"a":"' + b"x" * MAX_LINE_BYTES + b'"}\n', "it is longer than 1,048,576 bytes"),
    ],
    ids=["broken", "NaN", "csv", "array", "not text", "nested", "too long"],
)
def test_a_bad_json_line_is_named_and_the_next_one_is_read(line: bytes, reason: str) -> None:
    first, bad, last = read_text(b'{"a": 1}\n' + line + b'{"a": 2}\n')
    assert values_of([first, last]) == [{"a": 1}, {"a": 2}]
    assert isinstance(bad, BadRow)
    assert bad.line == 2
    assert bad.reason.startswith(reason)


# Sources that cannot be used at all


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "samples is empty; start it with the names of its columns, or write a JSON obj"),
        (b"\n \n", "samples is empty"),
        (b", ,\n1,2,3\n", "samples names no column; write the names in its first line"),
        (b"a, b,a \n", "has two columns named 'a'; rename one of them"),
        (b"\x1f\x8b\x08\x00a\n", "the first line of .*samples is no text"),
        (b"a,b\rc,d\r\n", "the header of .*samples cannot be read: it has a carriage return outs"),
        (b'[{"a": 1},\n', "is one JSON array; write its objects on one line each"),
        (b"[\n", "is one JSON array"),
        (b'a,"b\n1,2\n', "the header of .*samples cannot be read: a quote in it is not closed"),
        (b"a,b" + b"c" * MAX_LINE_BYTES, "the first line of .*samples is no text"),
    ],
    ids=[
        "empty",
        "blank",
        "nameless",
        "twice",
        "compressed",
        "bare \\r",
        "array",
        "array below",
        "quote",
        "too long",
    ],
)
def test_a_source_without_a_usable_header_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_text(text)


def test_a_column_that_the_task_needs_is_looked_for_in_the_header() -> None:
    check_columns(["light", "co2", "label"], ["label", "light"])
    with pytest.raises(DataError) as error:
        check_columns(["Light", "co2"], ["co2", "lihgt"], "rooms.csv")
    assert str(error.value) == (
        "the task needs the column 'lihgt', which is not in the header of rooms.csv, did you mean "
        "'Light'? its columns are Light, co2; rename one there or in the task"
    )
    with pytest.raises(DataError, match="needs the column 'y', which is not in the header of"):
        read_text("a,b\n1,2\n", task_columns=["a", "y"])
    assert values_of(read_text('{"a": 1}', task_columns=["a", "y"])) == [{"a": 1}]


# Going on after a restart

FRAGMENTS = st.sampled_from(["a", '"', ",", "\n", "\r\n", "1,2\n", '"x\ny",3\n', "é", "\n\n"])
TEXTS = st.lists(FRAGMENTS, max_size=25).map("".join)


def resumed_at_every_row(text: bytes) -> Iterator[tuple[list[Item], list[Item]]]:
    """What is read after each row if one reads through, and if one goes on from there."""

    async def gather() -> list[tuple[list[Item], list[Item]]]:
        through = await collect(path)
        stored = [msgspec.msgpack.encode(item.position) for item in through]
        places = [msgspec.msgpack.decode(place, type=Position) for place in stored]
        return [
            (through[index + 1 :], await collect(path, skip=place, say=notices.append))
            for index, place in enumerate(places)
        ]

    notices: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "samples", text)
        yield from asyncio.run(gather())
    assert notices == []


@given(text=TEXTS, damage=st.binary(max_size=2), separator=st.sampled_from(",;"))
def test_going_on_after_any_row_gives_the_same_rows_as_reading_through(
    text: str, damage: bytes, separator: str
) -> None:
    text = text.replace(",", separator)
    for through, resumed in resumed_at_every_row(b"a%sb\n" % separator.encode() + text.encode()):
        assert resumed == through
    for through, resumed in resumed_at_every_row(b"a,b\n" + damage + text.encode()):
        assert resumed == through


@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_rows_do_not_depend_on_the_pieces_they_arrive_in(text: str, cuts: list[int]) -> None:
    whole = b"a,b\n" + text.encode() + b'"1\n",2\n3,4\n5,6'
    ends = [0, *sorted(cuts), len(whole)]
    by_pieces, at_once = RowReader("text"), RowReader("text")
    found = [item for start, end in pairwise(ends) for item in by_pieces.feed(whole[start:end])]
    found += by_pieces.finish()
    assert found == [*at_once.feed(whole), *at_once.finish()]


@pytest.mark.parametrize(
    ("new", "notice"),
    [
        ("a,b\n9,9\n", "was cut, or is not the file that was read before"),
        ("b,a\n1,2\n3,4\n5,6\n", "is not the file that was read before"),
        ("a,b\n1,2\n3,5\n5,6\n", "is not the file that was read before"),
        ('{"a": 1, "b": 2}\n', "is not the file that was read before"),
    ],
    ids=["shorter", "other header", "other row", "other format"],
)
def test_another_file_is_read_from_its_start_and_that_is_said(
    tmp_path: Path, new: str, notice: str
) -> None:
    path = write(tmp_path / "x.csv", "a,b\n1,2\n3,4\n5,6\n")
    skip = read(path)[1].position
    write(tmp_path / "x.csv", new)
    notices: list[str] = []
    assert read(path, skip=skip, say=notices.append) == read(path)
    (said,) = notices
    assert said == f"{path} {notice}; reading it from its start"


def test_rows_added_while_the_peer_was_away_come_next(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b\n1,2\n3,4")
    skip = read(path)[-1].position
    assert read(path, skip=skip) == []
    with Path(path).open("a") as file:
        file.write("\n5,6\n")
    (row,) = read(path, skip=skip)
    assert isinstance(row, Row)
    assert (dict(row.values), row.line) == ({"a": "5", "b": "6"}, 4)


def test_the_rest_of_a_line_that_was_read_as_a_whole_row_is_not_a_row(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b\n1,2\n3,4")
    skip = read(path)[-1].position
    with Path(path).open("a") as file:
        file.write("0,1\n5,6\n")
    rest, row = read(path, skip=skip)
    assert isinstance(rest, BadRow)
    assert (rest.line, rest.reason) == (3, "its beginning was read as a whole row before")
    assert values_of([row]) == [{"a": "5", "b": "6"}]
    assert row.line == 4


# A file that grows

Scenario: TypeAlias = Callable[[Path, AsyncGenerator[Item, None]], Awaitable[None]]


def follow(path: Path, scenario: Scenario, skip: Position = START) -> list[str]:
    """Run a scenario on a followed file; what was said is returned."""
    notices: list[str] = []

    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            found = rows(str(path), follow=True, skip=skip, poll=POLL, say=notices.append)
            async with aclosing(found):
                await scenario(path, found)

    asyncio.run(run())
    return notices


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


async def next_values(found: AsyncGenerator[Item, None]) -> dict[str, object]:
    item = await anext(found)
    assert isinstance(item, Row), item
    return dict(item.values)


def test_a_followed_file_gives_lines_as_they_are_completed(tmp_path: Path) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        assert await next_values(found) == {"a": "1", "b": "2"}
        append(path, "")
        append(path, '4\n"5"')
        assert await next_values(found) == {"a": "3", "b": "4"}
        append(path, ",")
        append(path, "6\n")
        assert await next_values(found) == {"a": "5", "b": "6"}

    path = tmp_path / "x.csv"
    write(path, "a,b\n1,2\n3,")
    assert follow(path, scenario) == []


def test_a_replaced_file_is_read_from_its_start_and_that_is_said(tmp_path: Path) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        assert await next_values(found) == {"a": "1", "b": "2"}
        append(path, "3,4\n5,")
        write(tmp_path / "new", "b,a\n7,8\n")
        (tmp_path / "new").replace(path)
        assert await next_values(found) == {"a": "3", "b": "4"}
        half = await anext(found)
        assert isinstance(half, BadRow)
        assert half.line == 4
        assert half.reason == "the file was replaced or cut while it was being written"
        assert await next_values(found) == {"b": "7", "a": "8"}
        append(path, "9,10\n")
        row = await anext(found)
        assert row.line == 3
        assert row.position == (await collect(str(path)))[-1].position

    path = tmp_path / "x.csv"
    write(path, "a,b\n1,2\n")
    assert follow(path, scenario) == [f"{path} was replaced; reading the new file from its start"]


@pytest.mark.parametrize("new", ["a,b\n9,9\n", "a,b\n9,9\n" + "8,8\n" * 50])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_file_cut_or_written_anew_in_place_is_read_from_its_start(
    tmp_path: Path, new: str, resumed: bool
) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        waiting = asyncio.ensure_future(anext(found))
        if not resumed:
            assert values_of([await waiting]) == [{"a": "1", "b": "2"}]
            assert await next_values(found) == {"a": "3", "b": "4"}
            waiting = asyncio.ensure_future(anext(found))
        else:
            # A row beyond the position: then it is certain that the file was opened.
            append(path, "5,6\n")
            assert values_of([await waiting]) == [{"a": "5", "b": "6"}]
            waiting = asyncio.ensure_future(anext(found))
        os.truncate(path, 0)
        append(path, new)
        assert values_of([await waiting]) == [{"a": "9", "b": "9"}]

    path = tmp_path / "x.csv"
    skip = read(write(path, "a,b\n1,2\n3,4\n"))[-1].position
    assert follow(path, scenario, skip if resumed else START) == [
        f"{path} was cut or written anew; reading it from its start"
    ]


# Pipes and standard input


@pytest.fixture
def pipe() -> Iterator[tuple[str, int]]:
    """The path of a pipe's reading end, and its writing end, which the test has to close."""
    reading, writing = os.pipe()
    yield f"/dev/fd/{reading}", writing
    os.close(reading)


@pytest.mark.parametrize("header", [b"a\n", b""])
def test_a_line_that_arrived_in_a_pipe_is_given_before_the_next_is_written(
    pipe: tuple[str, int], header: bytes
) -> None:
    path, writing = pipe

    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            found = rows(path)
            os.write(writing, header)
            for number in range(20):
                os.write(writing, b"%d\n" % number if header else b'{"a": "%d"}\n' % number)
                assert await next_values(found) == {"a": str(number)}
            os.close(writing)
            assert [item async for item in found] == []

    asyncio.run(run())


def test_a_pipe_is_read_only_a_few_pieces_ahead(pipe: tuple[str, int]) -> None:
    path, writing = pipe
    line = b"x" * 999 + b"\n"
    num_lines, num_written = 5_000, 0

    def fill() -> None:
        nonlocal num_written
        for _ in range(num_lines):
            num_written += os.write(writing, line)
        os.close(writing)

    async def run() -> None:
        writer = threading.Thread(target=fill)
        ahead = 0
        async with asyncio.timeout(PATIENCE), aclosing(rows(path)) as found:
            writer.start()
            async for item in found:
                ahead = max(ahead, num_written - item.position.offset)
        writer.join(PATIENCE)
        # What waits, what was just read, what is being parsed, and what the pipe itself holds.
        assert ahead <= (MAX_PIECES_AHEAD + 3) * CHUNK_BYTES
        assert num_written == num_lines * len(line)

    asyncio.run(run())


# Beside other tasks


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "oneway samples"]


def test_a_cancelled_reader_ends_its_thread_even_when_rows_are_waiting(tmp_path: Path) -> None:
    async def run(path: str, follow: bool) -> None:
        used = asyncio.Event()

        async def use() -> None:
            async for _ in rows(path, follow=follow, poll=PATIENCE):
                used.set()
                if not follow:
                    await asyncio.Event().wait()

        async with asyncio.timeout(PATIENCE):
            task = asyncio.ensure_future(use())
            await used.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    short = write(tmp_path / "short.csv", "a\n1\n")
    long = write(tmp_path / "long.csv", "a\n" + "123456789\n" * CHUNK_BYTES)
    for path, follow in ((short, True), (long, False)):
        asyncio.run(run(path, follow))
        for thread in reading_threads():
            thread.join(PATIENCE)
            assert not thread.is_alive()


# Pace


class FakeTime:
    """A clock that only moves when somebody sleeps or works."""

    def __init__(self, oversleep: float = 0.0) -> None:
        self.now = 100.0
        self.oversleep = oversleep

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds + self.oversleep


async def numbers(count: int) -> AsyncGenerator[int, None]:
    for number in range(count):
        yield number


def paced_times(per_second: float, count: int, oversleep: float = 0.0) -> list[float]:
    async def run() -> list[float]:
        paced = pace(numbers(count), per_second, clock=fake.clock, sleep=fake.sleep)
        return [fake.now - 100.0 async for _ in paced]

    fake = FakeTime(oversleep)
    return asyncio.run(run())


@pytest.mark.parametrize("per_second", [10, 100, 1000])
def test_a_paced_stream_does_not_drift_if_every_sleep_takes_too_long(per_second: int) -> None:
    times = paced_times(per_second, 2001, oversleep=0.03)
    late = [time - index / per_second for index, time in enumerate(times)]
    assert min(late) >= -1e-9
    assert max(late) <= 0.03 + 1e-9


def test_a_time_without_samples_is_not_followed_by_a_burst() -> None:
    async def run() -> list[float]:
        times = []
        paced = pace(numbers(200), 100, clock=fake.clock, sleep=fake.sleep)
        async for number in paced:
            times.append(fake.now)
            if number == 50:
                fake.now += 60.0
        return times

    fake = FakeTime()
    times = asyncio.run(run())
    after = [time for time in times if time >= times[51]]
    assert sum(time == times[51] for time in after) == 11  # those of a tenth of a second, and one
    assert after[-1] - after[0] == pytest.approx((len(after) - 11) / 100)

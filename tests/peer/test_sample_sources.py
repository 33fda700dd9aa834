from __future__ import annotations

import asyncio
import csv
import io
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import ConfigError, DataError, MissingDataError
from oneway.peer.sample_stream import SampleStream
from oneway.peer.samples import (
    CHUNK_BYTES,
    MAX_PIECES_AHEAD,
    ROWS_PER_TURN,
    pace,
    rows,
)
from oneway.tables.cells import SPACES
from oneway.tables.format import MAX_RECORD_BYTES, MAX_RECORD_LINES, check_columns
from oneway.tables.rows import START, BadRow, Position, Row, RowReader

T = TypeVar("T")
Item: TypeAlias = Row | BadRow

PATIENCE = 30.0
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
    lines = [["a", "b, or ;", "c"], ["1", 'say "x"', "3"], ["4", "new\nline", "6"]]
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=line_end).writerows(lines)
    items = read_text(mark + text.getvalue())
    assert values_of(items) == [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_json_lines_give_json_values() -> None:
    items = read_text('\ufeff\n{"a": 1, "b": [true, null]}\r\n\n{"b": "é"}')
    assert values_of(items) == [{"a": 1, "b": [True, None]}, {"b": "é"}]
    assert [item.line for item in items] == [2, 4]


def test_the_last_line_of_a_file_needs_no_line_end() -> None:
    assert values_of(read_text("a,b\n1,2")) == [{"a": "1", "b": "2"}]


def test_blank_lines_are_no_rows() -> None:
    items = read_text("\n\na,b\n\n1,2\r\n\r\n3,4\n\n")
    assert values_of(items) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    assert [item.line for item in items] == [5, 7]


def test_spaces_around_column_names_do_not_count_and_a_nameless_column_gets_a_number() -> None:
    assert values_of(read_text(", b \n1,2\n")) == [{"column 1": "1", "b": "2"}]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_column_name_may_go_over_lines(separator: str) -> None:
    for text in ('"a\nb",c\n1,2\n', 'c,"a\nb",d\n2,1,3\n'):
        (row,) = read_text(text.replace(",", separator))
        assert isinstance(row, Row)
        assert (row.values["a\nb"], row.values["c"], row.line) == ("1", "2", 3)


CELLS = st.text(st.sampled_from('ab1é ",;\t\n\r\u2028'), max_size=6)


def test_a_quoted_row_number_without_a_header_is_left_out_as_r_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b'"date","Light"\n"1","2015-02-04",426\n2,"2015-02-05",0\n')
    first, second = read(path)
    assert first.values == {"date": "2015-02-04", "Light": "426"}
    assert second.reason == "it has 3 cells, but the header has 2 columns"


@settings(deadline=None)
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


def test_a_short_row_has_empty_cells_and_one_of_separators_only_is_none() -> None:
    first, last = read_text(b"a,b\n1\n,\n , \n3,4\n")
    assert values_of([first, last]) == [{"a": "1", "b": ""}, {"a": "3", "b": "4"}]
    assert (first.line, last.line, last.position.num_rows) == (2, 5, 2)


# Rows that cannot be parsed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1,2,3\n", "it has 3 cells, but the header has 2 columns"),
        (b"1,\0\n", "it holds bytes that are not text"),
        (b'"\0\n",2\n', "it holds bytes that are not text"),
        (b"1,2\r3\n", "it has a carriage return outside quotes that ends no line"),
        (b"1," + b"x" * 200_000 + b"\n", "a cell in it is longer than 131,072 characters"),
        (b"1," + b"x" * MAX_RECORD_BYTES + b"\n", "it is longer than 1,048,576 bytes"),
    ],
    ids=[
        "too many",
        "not text",
        "not text in quotes",
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
        (b'{"a":"' + b"x" * MAX_RECORD_BYTES + b'"}\n', "it is longer than 1,048,576 bytes"),
    ],
    ids=["broken", "NaN", "csv", "array", "not text", "nested", "too long"],
)
def test_a_bad_json_line_is_named_and_the_next_one_is_read(line: bytes, reason: str) -> None:
    first, bad, last = read_text(b'{"a": 1}\n' + line + b'{"a": 2}\n')
    assert values_of([first, last]) == [{"a": 1}, {"a": 2}]
    assert isinstance(bad, BadRow)
    assert bad.line == 2
    assert bad.reason.startswith(reason)


def test_a_line_may_have_a_megabyte_and_not_a_byte_more() -> None:
    # The csv module itself takes at most 128 KiB a cell.
    cells = ["x" * 100_000] * 10
    rest = MAX_RECORD_BYTES - len(",".join(cells)) - len(",\n")
    header = ",".join("abcdefghijk") + "\n"
    (fits,) = read_text(header + ",".join([*cells, "y" * rest]) + "\n")
    assert isinstance(fits, Row)
    (long,) = read_text(header + ",".join([*cells, "y" * (rest + 1)]) + "\n")
    assert isinstance(long, BadRow)


def test_a_bad_first_json_line_that_is_too_long_does_not_move_the_next() -> None:
    long = b'{"a":"' + b"x" * (3 * MAX_RECORD_BYTES) + b'"}\n'
    bad, good = read_text(long + b'{"a": 2}\n')
    assert isinstance(bad, BadRow)
    assert bad.position.offset == len(long)
    assert values_of([good]) == [{"a": 2}]


def test_a_quote_that_is_never_closed_costs_one_row() -> None:
    lines = [f"{number},2\n" for number in range(3 * MAX_RECORD_LINES)]
    items = read_text("a,b\n" + lines[0] + '"oops,2\n' + "".join(lines[1:]))
    bad = only(items, BadRow)
    assert (bad.line, bad.reason) == (3, "a quote in it is not closed in 100 lines")
    assert [row.values["a"] for row in items if isinstance(row, Row)] == [
        str(number) for number in range(3 * MAX_RECORD_LINES)
    ]


def test_a_quote_left_open_at_the_end_of_a_file_costs_one_row() -> None:
    bad, *good = read_text('a,b\n"1,2\n3,4\n5,6')
    assert isinstance(bad, BadRow)
    assert bad.reason == "a quote in it is never closed"
    assert values_of(good) == [{"a": "3", "b": "4"}, {"a": "5", "b": "6"}]


def test_an_open_quote_over_a_megabyte_costs_one_row() -> None:
    long = "x" * 600_000 + "\n"
    items = read_text('a,b\n"1,2\n' + long + long + "3,4\n")
    assert [item.line for item in items if isinstance(item, BadRow)] == [2, 3, 4]
    assert only(items, Row).values == {"a": "3", "b": "4"}


def test_a_quote_inside_a_cell_is_a_character() -> None:
    assert values_of(read_text('a,b\n5" pipe,2\n3,4\n')) == [
        {"a": '5" pipe', "b": "2"},
        {"a": "3", "b": "4"},
    ]


# Sources that cannot be used at all


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for follow in (False, True):
        with pytest.raises(MissingDataError, match=r"none\.csv does not exist; check the path"):
            read(str(tmp_path / "none.csv"), follow=follow)
    with pytest.raises(DataError, match="is a folder without images by class; name a file"):
        read(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "secret.csv", "a,b\n")
    Path(path).chmod(0)
    with pytest.raises(DataError, match=r"secret\.csv cannot be read \(Permission denied\)"):
        read(path)


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
        (b'a,"b\n1,2\n', "has a header in which a quote is never closed; start it with the names"),
        (b'a,"b\n' + b"c\n" * 1001, "has no header in its first 100 lines"),
        (b"a,b" + b"c" * MAX_RECORD_BYTES, "has no header in its first 100 lines and 1,048,576"),
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
        "quote at the end",
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


@settings(deadline=None, max_examples=60)
@given(text=TEXTS, damage=st.binary(max_size=2), separator=st.sampled_from(",;"))
def test_going_on_after_any_row_gives_the_same_rows_as_reading_through(
    text: str, damage: bytes, separator: str
) -> None:
    text = text.replace(",", separator)
    for through, resumed in resumed_at_every_row(b"a%sb\n" % separator.encode() + text.encode()):
        assert resumed == through
    for through, resumed in resumed_at_every_row(b"a,b\n" + damage + text.encode()):
        assert resumed == through


def test_going_on_in_json_lines_gives_the_same_rows_as_reading_through() -> None:
    long = b'{"a":"' + b"x" * (MAX_RECORD_BYTES + CHUNK_BYTES) + b'"}\n'
    pairs = list(resumed_at_every_row(b'\n{"a":1}\n' + long + b'oops\n\n{"a":2}\n{"a":3}'))
    assert [len(through) for through, _ in pairs] == [4, 3, 2, 1, 0]
    for through, resumed in pairs:
        assert resumed == through


@settings(deadline=None)
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
        append(path, '4\n"5')
        assert await next_values(found) == {"a": "3", "b": "4"}
        append(path, "\n")
        append(path, '",6\n')
        assert await next_values(found) == {"a": "5\n", "b": "6"}

    path = tmp_path / "x.csv"
    write(path, "a,b\n1,2\n3,")
    assert follow(path, scenario) == []


def test_a_followed_file_may_still_be_empty(tmp_path: Path) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        waiting = asyncio.ensure_future(anext(found))
        append(path, "a,")
        append(path, "b\n1")
        append(path, ",2\n")
        assert values_of([await waiting]) == [{"a": "1", "b": "2"}]

    path = tmp_path / "x.csv"
    write(path, "")
    assert follow(path, scenario) == []


def test_following_goes_on_from_a_position(tmp_path: Path) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        append(path, "5,6\n")
        assert await next_values(found) == {"a": "5", "b": "6"}

    path = tmp_path / "x.csv"
    skip = read(write(path, "a,b\n1,2\n3,4\n"))[-1].position
    assert follow(path, scenario, skip) == []


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


def test_a_file_that_is_moved_away_is_waited_for(tmp_path: Path) -> None:
    async def scenario(path: Path, found: AsyncGenerator[Item, None]) -> None:
        assert await next_values(found) == {"a": "1", "b": "2"}
        old = path.rename(tmp_path / "x.csv.1")
        append(old, "3,4\n")
        assert await next_values(found) == {"a": "3", "b": "4"}
        write(path, "a,b\n5,6\n")
        assert await next_values(found) == {"a": "5", "b": "6"}

    path = tmp_path / "x.csv"
    write(path, "a,b\n1,2\n")
    assert len(follow(path, scenario)) == 1


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


def test_a_new_file_without_the_columns_of_the_task_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            found = rows(str(path), follow=True, poll=POLL, task_columns=["a"], say=lambda _: None)
            async with aclosing(found):
                await anext(found)
                write(tmp_path / "new", "z\n7\n")
                (tmp_path / "new").replace(path)
                with pytest.raises(DataError, match="needs the column 'a'"):
                    await anext(found)

    path = tmp_path / "x.csv"
    write(path, "a,b\n1,2\n")
    asyncio.run(run())


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


def test_a_named_pipe_is_a_source_and_has_no_place_to_go_on_from(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    assert stat.S_ISFIFO(Path(path).stat().st_mode)
    writer = threading.Thread(target=write, args=(Path(path), "a,b\n1,2\n3,4\n"))
    writer.start()
    skip = Position(offset=8, last_offset=4, num_rows=1, num_lines=2, checksum=1)
    assert values_of(read(path, skip=skip)) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    writer.join(PATIENCE)


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


ECHO = """
import asyncio, sys
from contextlib import aclosing
from oneway.errors import DataError
from oneway.peer.samples import rows

async def echo(first):
    async with aclosing(rows("-")) as found:
        async for item in found:
            print(item.line, getattr(item, "values", "bad"), flush=True)
            first.set()
            if str(item.position.num_rows) == sys.argv[1]:
                return

async def cancel_after_first():
    first = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        echoing = tasks.create_task(echo(first))
        await first.wait()
        echoing.cancel()

try:
    asyncio.run(cancel_after_first() if sys.argv[1] == "cancel" else echo(asyncio.Event()))
except DataError as error:
    print(error)
print("done", flush=True)
"""


async def start_echo(mode: str, **options: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-X", "dev", "-W", "error", "-c", ECHO, mode),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **options,
    )


def test_standard_input_answers_each_line_and_lets_the_process_end_while_it_is_open() -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            process = await start_echo("2", stdin=asyncio.subprocess.PIPE)
            assert process.stdin
            assert process.stdout
            assert process.stderr
            process.stdin.write(b"a;b\n1;2\n")
            assert await process.stdout.readline() == b"2 {'a': '1', 'b': '2'}\n"
            process.stdin.write(b"3;4;5\n")
            assert await process.stdout.readline() == b"3 bad\n"
            # Standard input stays open: the thread that reads it must not hold the process.
            assert await process.stdout.readline() == b"done\n"
            assert await process.wait() == 0
            assert await process.stderr.read() == b""
            process.stdin.close()

    asyncio.run(run())


def test_a_cancelled_reader_of_standard_input_lets_the_process_end() -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            process = await start_echo("cancel", stdin=asyncio.subprocess.PIPE)
            assert process.stdin
            assert process.stdout
            assert process.stderr
            process.stdin.write(b"a\n1\n")
            assert await process.stdout.read() == b"2 {'a': '1'}\ndone\n"
            assert await process.wait() == 0
            assert await process.stderr.read() == b""
            process.stdin.close()

    asyncio.run(run())


def test_standard_input_may_be_a_file_empty_or_closed(tmp_path: Path) -> None:
    def answer(command: str) -> str:
        shell = ["sh", "-c", f'"$0" "$@" {command}', sys.executable, "-c", ECHO, "99"]
        done = subprocess.run(shell, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout

    path = write(tmp_path / "x.jsonl", '{"a": 1}\n{"a": 2}')
    assert answer(f"< '{path}'") == "1 {'a': 1}\n2 {'a': 2}\ndone\n"
    assert answer("< /dev/null").startswith("standard input is empty; start it with")
    assert answer("<&-").startswith("standard input is closed; pipe samples")


def test_a_pipe_that_does_not_wait_is_waited_for(pipe: tuple[str, int]) -> None:
    path, writing = pipe
    os.set_blocking(int(path.rsplit("/", 1)[1]), False)

    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            process = await start_echo("1", stdin=int(path.rsplit("/", 1)[1]))
            assert process.stdout is not None
            os.write(writing, b"a\n1\n")
            assert await process.stdout.readline() == b"2 {'a': '1'}\n"
            assert await process.wait() == 0

    asyncio.run(run())
    os.close(writing)


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


def test_other_tasks_get_their_turn_while_a_long_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a\n" + "1\n" * 50_000)

    async def run() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        task = asyncio.ensure_future(other())
        longest, last_turns, since = 0, 0, 0
        async for _ in rows(path):
            since = since + 1 if turns == last_turns else 1
            longest, last_turns = max(longest, since), turns
        task.cancel()
        assert longest <= 2 * ROWS_PER_TURN

    asyncio.run(run())


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


def test_a_paced_stream_passes_the_number_per_second() -> None:
    assert paced_times(4, 9) == pytest.approx([index / 4 for index in range(9)], abs=1e-9)


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


@pytest.mark.parametrize("per_second", [0.0, -1.0, float("nan")])
def test_a_pace_must_be_above_zero(per_second: float) -> None:
    with pytest.raises(ConfigError, match="rate is"):
        SampleStream("-", rate=per_second)


def test_closing_a_paced_stream_closes_what_it_paces() -> None:
    closed = []

    async def endless() -> AsyncGenerator[int, None]:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    async def run() -> None:
        async with aclosing(pace(endless(), 10)) as paced:
            await anext(paced)
        assert closed == [True]

    asyncio.run(run())

"""One meaning of a cell, whoever reads it."""

import numpy as np
import polars as pl
import pytest

from oneway.tables.cells import (
    as_number,
    column_numbers,
    empty_cells,
    is_empty,
    label_key,
    missing_spellings,
    value_spellings,
)

CELLS = (
    *("", " ", "?", "NA", " NA", "nUll", "None", "none", "nan", "-nan", "NaT", "n/a", "null"),
    *("1", "+1", "01", "1.0", "1.00", " 1", "1 ", "True", "fALSE", ".5", "5.", "+.5", "1e3", "-0"),
    *(
        "1_000",
        "0x10",
        "inf",
        "-Infinity",
        "1,5",
        "--1",
        "\u0661",
        "\xa07\xa0",
        "red",
        '5"',
        "\t3\v",
    ),
)


def test_a_column_and_a_cell_have_the_same_numbers_and_missing_values():
    numbers, wrong = column_numbers(pl.Series(CELLS))
    for cell, number, is_wrong in zip(CELLS, numbers, wrong, strict=True):
        known = None if is_empty(cell) else as_number(cell)
        assert (None if np.isnan(number) else number) == known, cell
        assert is_wrong == (known is None and not is_empty(cell)), cell
    assert empty_cells(pl.Series(CELLS)).to_list() == [is_empty(cell) for cell in CELLS]


def test_listed_spellings_of_missing_values_are_those_of_the_rule():
    assert all(map(is_empty, missing_spellings()))
    listed = {cell for cell in CELLS if is_empty(cell)}
    assert listed <= set(missing_spellings())


@pytest.mark.parametrize("value", ["1", "0", "-2", "2.5", "-0.25", "1e30", "007", "red", "True"])
def test_listed_spellings_of_a_value_have_its_key(value):
    spellings = value_spellings(value)
    assert value in spellings
    assert {label_key(text) for text in spellings} == {label_key(value)}
    assert {
        cell for cell in ("+1", "01", "1.00", "True", " 1") if label_key(cell) == label_key(value)
    } <= set(spellings)

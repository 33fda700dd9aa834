"""What is said to SQLite: rows put in, and read in the order in which they came."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, TypeAlias

Change: TypeAlias = tuple[str, list[tuple[Any, ...]]]
"""A statement, and the parameters of each of its executions."""


def put(table: str, names: str, values: str) -> str:
    """The statement that inserts a row, or changes the one that has these names."""
    columns = f"{names}, {values}".split(", ")
    marks = ", ".join("?" * len(columns))
    anew = ", ".join(f"{column} = excluded.{column}" for column in values.split(", "))
    # Not REPLACE, which would free and write again every page of a row, the unchanged ones too.
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        f" ON CONFLICT ({names}) DO UPDATE SET {anew}"
    )


def select(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, in the order of insertion, or of its key if that is a number.

    Raises:
        sqlite3.Error: If they cannot be read.
    """
    return connection.execute(f"SELECT {columns} FROM {table} ORDER BY rowid")

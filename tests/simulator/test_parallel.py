"""Parallel jobs come back all, and a worker that joblib replaces is no news."""

from __future__ import annotations

import operator
import warnings

import joblib
import pytest

from oneway.simulator.parallel import in_parallel

REPLACED = "A worker stopped while some jobs were given to the executor."


def squares(count):
    return [joblib.delayed(operator.pow)(number, 2) for number in range(count)]


@pytest.mark.parametrize("threads", [False, True])
def test_every_job_comes_back_once(threads):
    found = sorted(in_parallel(squares(20), 2, threads=threads))
    assert found == [number**2 for number in range(20)]


def test_a_worker_that_is_replaced_meanwhile_is_no_error_where_warnings_are():
    """Joblib warns from the thread that replaces it: raised there, the jobs would never end."""
    results = in_parallel(squares(3), 1, threads=True)
    next(results)
    warnings.warn(REPLACED, UserWarning, stacklevel=1)
    with pytest.raises(UserWarning, match="another"):
        warnings.warn("another", UserWarning, stacklevel=1)
    assert len(list(results)) == 2
    with pytest.raises(UserWarning, match="stopped"):
        warnings.warn(REPLACED, UserWarning, stacklevel=1)

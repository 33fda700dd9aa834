"""Executors: every job comes back once, also those whose worker was killed."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import pytest

from oneway.errors import ClusterError, ConfigError, DivergenceError
from oneway.simulator.executors import EXECUTORS, Job, Local, local, opened

REPLACED = "A worker stopped while some jobs were given to the executor."


def squares(count):
    return [Job(pow, (number, 2)) for number in range(count)]


@pytest.mark.parametrize("threads", [False, True])
def test_every_job_comes_back_once(threads):
    found = sorted(Local().results(squares(20), num_workers=2, threads=threads))
    assert found == [number**2 for number in range(20)]


def test_a_worker_that_is_replaced_meanwhile_is_no_error_where_warnings_are():
    """Joblib warns from the thread that replaces it: raised there, the jobs would never end."""
    results = Local().results(squares(3), num_workers=1, threads=True)
    next(results)
    warnings.warn(REPLACED, UserWarning, stacklevel=1)
    with pytest.raises(UserWarning, match="another"):
        warnings.warn("another", UserWarning, stacklevel=1)
    assert len(list(results)) == 2
    with pytest.raises(UserWarning, match="stopped"):
        warnings.warn(REPLACED, UserWarning, stacklevel=1)


def killed_once(number, folder):
    """A job whose first worker is killed, after it has begun."""
    if number == 3 and not (mark := Path(folder) / "killed").exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_job_whose_worker_was_killed_is_run_again(tmp_path):
    jobs = [Job(killed_once, (number, str(tmp_path))) for number in range(8)]
    assert sorted(Local().results(jobs, num_workers=2)) == list(range(8))
    assert (tmp_path / "killed").exists()


def kill(folder):
    (Path(folder) / str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_that_kills_every_worker_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "ATTEMPTS", 2)
    with pytest.raises(ClusterError, match="memory"):
        list(Local().results([Job(kill, (str(tmp_path),))], num_workers=2))
    assert len(list(tmp_path.iterdir())) == 2


def diverge():
    raise DivergenceError("it left", round_index=3, node=1, smallest_mass=0.5)


def test_an_error_comes_back_as_it_was_raised():
    with pytest.raises(DivergenceError, match="it left") as found:
        list(Local().results([Job(diverge, ())] * 2, num_workers=2))
    assert (found.value.round_index, found.value.for_shell) == (3, "it left")


@pytest.mark.parametrize(
    ("on", "culprit"),
    [
        ("rya", "did you mean 'ray'"),
        ("", "one of local, ray"),
        ("local://here", "here"),
        ("ray://", "ray://"),
        ("ray://a b", "'a b'"),
        (3, "on is 3"),
    ],
)
def test_an_executor_that_there_is_not_is_named(on, culprit):
    with pytest.raises(ConfigError, match=culprit), opened(on):
        pass


def test_a_new_executor_is_one_registration(monkeypatch):
    monkeypatch.setattr(EXECUTORS, "_entries", dict(EXECUTORS.items()))
    EXECUTORS.register(lambda address: address, name="elsewhere")
    assert opened("elsewhere://far") == "far"

"""Executors: where the runs of sweeps and reproductions are carried out."""

from oneway.simulator.executors import local, ray_tasks  # registers them
from oneway.simulator.executors.base import DEFAULT, EXECUTORS, Executor, Job, opened
from oneway.simulator.executors.local import Local

__all__ = ["DEFAULT", "EXECUTORS", "Executor", "Job", "Local", "local", "opened", "ray_tasks"]

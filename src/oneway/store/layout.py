"""What the files and folders of runs, labs, demos and reproductions are called."""

from __future__ import annotations

SUMMARY = "run.json"
ARRAYS = "arrays.npz"
RESULT = "result.json"
REPORT = "report.html"
RUNS = "runs"
"""Below a lab or a demo: the runs that belong to it."""
PANELS = "panels"

MOST_BYTES = 1 << 26
"""A longer file of text is none of ours."""

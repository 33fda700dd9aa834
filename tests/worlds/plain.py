"""Plain tasks, for tests about all else: Online Push-Sum without privacy, every sample a push."""

from __future__ import annotations

from typing import Any

from oneway.task.privacy import NO_PRIVACY

PLAIN: dict[str, Any] = {"method": "ops", "privacy": NO_PRIVACY, "samples_per_push": 1}
"""For a task in Python."""
PLAIN_TOML = 'method = "ops"\nprivacy = "none"\nsamples_per_push = 1\n'
"""For the text of a task; above its [features]."""
PLAIN_FLAGS = ("--method", "ops", "--privacy", "none", "--samples-per-push", "1")
"""For a command line."""

"""Tasks without privacy, for tests about all else: every sample is a push of its own, as it is."""

from __future__ import annotations

from typing import Any

from oneway.task.privacy import NO_PRIVACY

PLAIN: dict[str, Any] = {"privacy": NO_PRIVACY, "samples_per_push": 1}
"""For a task in Python."""
PLAIN_TOML = 'privacy = "none"\nsamples_per_push = 1\n'
"""For the text of a task; above its [features]."""
PLAIN_FLAGS = ("--privacy", "none", "--samples-per-push", "1")
"""For a command line."""

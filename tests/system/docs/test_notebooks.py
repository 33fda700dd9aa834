"""The notebooks run from scratch, and what is stored of them is small and names no machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
RUN = ROOT / "docs" / "run_notebooks.py"
SECONDS = 300.0
MOST_BYTES = 200_000


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook, in a process of its own: what a kernel's client warns of is not our doing."""
    return subprocess.run(
        [sys.executable, RUN, "--check", name],
        cwd=folder,
        env=os.environ | {"ONEWAY_DATA": str(folder / "data"), "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_scratch_without_an_error_or_a_warning(path, tmp_path):
    done = run(path.stem, tmp_path)
    if "the port is in use" in done.stderr:
        # Peers beside us took the port that was free a moment ago.
        done = run(path.stem, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_was_run_in_order_is_small_and_names_no_folder(path):
    assert path.stat().st_size < MOST_BYTES
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert len(outputs) >= 5
    assert not [it for it in outputs if it["output_type"] == "error" or it.get("name") == "stderr"]
    text = json.dumps([it for it in outputs if "image/png" not in it.get("data", {})])
    assert not re.search(r"(?<![\w<])/(?:home|root|tmp|work|Users)/", text)
    assert "<script" not in text


def test_links_between_notebooks_lead_somewhere():
    for path in NOTEBOOKS:
        text = "".join("".join(cell["source"]) for cell in cells(path))
        for target in re.findall(r"\]\(([^)]+\.ipynb)\)", text):
            assert (path.parent / target).exists(), target

"""Run the notebooks of docs/notebooks, each in an empty folder, and keep what they show.

make notebooks

With --check nothing is kept. It fails if a cell does, or writes to stderr: a warning is an error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).parent / "notebooks"
CELL_SECONDS = 120
KEPT = ("text/html", "image/png", "text/plain")
"""Of several forms of one output the first of these is enough."""


def run(notebook: NotebookNode) -> None:
    """Execute all cells in a new kernel and an empty folder; outputs are put into the notebook."""
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            record_timing=False,
            extra_arguments=["--HistoryManager.enabled=False", "--log-level=ERROR"],
        )
        client.execute()


def tidy(notebook: NotebookNode) -> None:
    """Drop what nobody reads: progress bars that are gone, second forms of outputs, versions."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_empty(output)]
            for output in cell.outputs:
                if "data" in output:
                    kept = next(kind for kind in KEPT if kind in output.data)
                    output.data = {kept: output.data[kept]}
                    output.metadata = {}


def complaints(notebook: NotebookNode) -> list[str]:
    """What cells wrote to stderr."""
    return [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
    ]


def _is_empty(output: NotebookNode) -> bool:
    return output.output_type == "display_data" and output.data.get("text/html") == ""


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="without .ipynb; all if there are none")
    parser.add_argument("--check", action="store_true", help="change no file")
    chosen = parser.parse_args()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if chosen.names and path.stem not in chosen.names:
            continue
        notebook = nbformat.read(path, as_version=4)
        run(notebook)
        for complaint in complaints(notebook):
            sys.exit(f"{path.name} writes to stderr: {complaint}")
        tidy(notebook)
        if not chosen.check:
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()

"""The plugins of docs/architecture.md, written to files and used by the commands beside them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORLDS = ROOT / "tests" / "worlds"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PLUGIN = re.compile(
    r"^```python\n# (?P<name>\w+)\.py\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMANDS = re.findall(r"^```sh\noneway (.*?)\n```$", ARCHITECTURE, re.MULTILINE)
ONEWAY = [sys.executable, "-P", "-m", "oneway"]
"""As the installed command, which does not look for modules in the folder it is called in."""
SECONDS = 300.0


def write_plugins(text: str, folder: Path) -> list[str]:
    """Write every example to its file; the names of the modules."""
    found = {match["name"]: match["code"] for match in PLUGIN.finditer(text)}
    for name, code in found.items():
        (folder / f"{name}.py").write_text(code, "utf-8")
    return list(found)


def run_oneway(arguments: str, folder: Path, plugins: str) -> str:
    path = os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*ONEWAY, *shlex.split(arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "ONEWAY_PLUGINS": plugins},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", COMMANDS)
def test_commands_of_the_architecture_run_with_its_plugins(arguments, tmp_path):
    names = write_plugins(ARCHITECTURE, tmp_path)
    assert run_oneway(arguments, tmp_path, ",".join(names))


def test_an_installed_package_is_found_by_its_entry_point(tmp_path):
    """What `pip install` leaves behind: metadata with an entry point in our group."""
    write_plugins(ARCHITECTURE, tmp_path)
    metadata = tmp_path / "huber-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: huber\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[oneway.plugins]\nhuber = huber\n")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    }
    environment.pop("ONEWAY_PLUGINS", None)
    script = "from oneway.models import MODELS; print('huber' in MODELS)"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "True\n"


@pytest.mark.parametrize("plugin", ["no_such_package", "broken"])
def test_a_plugin_that_cannot_be_imported_is_one_sentence(tmp_path, plugin):
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    done = subprocess.run(
        [*ONEWAY, "simulate", "--data", "synthetic"],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
            "ONEWAY_PLUGINS": plugin,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert plugin in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_there_is_an_example_of_everything_that_can_be_added():
    named = set(re.findall(r"oneway\.(?:\w+)\.([A-Z_]+)`", ARCHITECTURE))
    assert named == {
        "METHODS", "TRANSFORMS", "STEP_RULES", "SCHEDULES", "MODELS", "DATASETS", "GRAPHS",
        "TRANSPORTS",
    }  # fmt: skip
    shown = {match["name"] for match in PLUGIN.finditer(ARCHITECTURE)}
    assert shown >= {"rmsprop", "coarse", "huber", "root", "moons", "star", "deflated"}
    assert len(COMMANDS) >= 4


def test_the_architecture_lists_every_package_and_no_other():
    tree = ROOT / "src" / "oneway"
    packages = {path.name for path in tree.iterdir() if (path / "__init__.py").exists()}
    alone = {"registry", "sentences", "errors"}
    section = ARCHITECTURE.split("## ")[1]
    rows = re.findall(r"^\| \d* ?\| (.*?) \|", section, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == packages | alone


CHECK = """
import asyncio, time
from deflated import Deflated
from transport_checks import check_transport
from oneway.transport import ConnectionLimits
from oneway.transport.keys import generate

class Loopback:
    max_frame = 4096

    def __init__(self):
        self.keys = {}
        self.limits = ConnectionLimits(self.max_frame, heartbeat=0.2, handshake=0.5)

    async def start(self, name, address=None):
        secret = self.keys.setdefault(name, generate()).secret
        address = address or "127.0.0.1:0"
        return Deflated(secret, address, limits=self.limits, clock=time.monotonic)

    async def pass_time(self):
        await asyncio.sleep(0.02)

asyncio.run(check_transport(Loopback))
"""


def test_the_transport_of_the_architecture_keeps_the_promise_of_transports(tmp_path):
    write_plugins(ARCHITECTURE, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{WORLDS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr

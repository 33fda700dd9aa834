"""Code that a file names is imported only if the owner of the machine has listed its exact name."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from oneway.errors import ConfigError, OnewayError, TaskError
from oneway.export.json_format import from_json
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.config_file import config_toml, parse_config
from oneway.peer.home.home import Home
from oneway.registry import code_names
from oneway.task.settings import read_settings
from oneway.task.task import Task

EXPLOIT = "torch.fx.graph_module:reduce_graph_module"
TRAP = "trap:network"


def task_text(module: str, arguments: str = "{}", more: str = "") -> str:
    return f"""
label = "y"
classes = ["no", "yes"]
model = "torch"
[features]
x = {{}}
[options.torch]
module = "{module}"
arguments = {arguments}
{more}
"""


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a file behind when it is imported."""
    mark = tmp_path / "imported"
    (tmp_path / "trap.py").write_text(f"open({str(mark)!r}, 'w').close()\ndef network(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "trap", raising=False)
    return mark


def test_a_task_cannot_run_a_command_during_peer_init(oneway, here, tmp_path: Path):
    """The exploit as it was found: PyTorch's own loader of code, annotated to return a module."""
    mark = tmp_path / "mark"
    body = json.dumps(f"import os; os.system('touch {mark}')")
    arguments = f'{{ body = {{ _code = {body} }}, import_block = "" }}'
    Path("task.toml").write_text(task_text(EXPLOIT, arguments))
    made = oneway("peer", "init", "ada", "--task", "task.toml")
    made.check_refused(TaskError, "task.toml", EXPLOIT, f"--allow {EXPLOIT}", "peer.toml")
    assert not mark.exists()
    assert [path.name for path in here.iterdir()] == ["task.toml"]


@pytest.mark.parametrize(
    "text",
    [
        task_text(TRAP),
        task_text("trap:networks"),
        task_text("other:network", more=f'loss = "{TRAP}"'),
        task_text("other:network", f'{{ layers = ["{TRAP}"] }}'),
        task_text("oneway.models.examples:digits_network"),
    ],
)
def test_no_file_imports_what_is_not_listed(text, trap, tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(text)
    allow = ["trap:network2", "trap", "other:network", "trap:networ"]
    for read in (
        lambda: Task.read(path, allow=allow),
        lambda: Home.create(tmp_path / "peer", "ada", path, allow=allow),
        lambda: read_settings(path, {}, allow=allow),
    ):
        with pytest.raises(OnewayError, match="names the code"):
            read()
    assert not trap.exists()
    assert not (tmp_path / "peer").exists()


@pytest.mark.parametrize("command", ["simulate", "lab", "tune", "audit privacy"])
def test_every_command_that_takes_a_task_refuses_unlisted_code(command, oneway, here, trap):
    (here / "task.toml").write_text(task_text(TRAP))
    given = (*command.split(), "--task", "task.toml", "--allow", "trap:networ")
    oneway(*given).check_refused(ConfigError, "task.toml", TRAP)
    assert not trap.exists()


def test_a_peer_whose_list_was_shortened_does_not_start(tmp_path, trap):
    text = task_text(TRAP).replace('model = "torch"', 'model = "logistic"')
    path = tmp_path / "task.toml"
    path.write_text(text.partition("[options")[0])
    home = Home.create(tmp_path / "ada", "ada", path, "127.0.0.1:7701")
    home.task_path.write_text(task_text(TRAP))
    with pytest.raises(TaskError, match=r'allow = \["trap:network"\]'):
        home.task()
    assert not trap.exists()


def test_an_exported_model_of_somebody_else_runs_nothing(trap):
    exported = {
        "format": "oneway model 1", "label": "y", "model": "torch", "classes": ["no", "yes"],
        "options": {"module": TRAP, "loss": "logistic"},
        "features": [{"name": "x"}], "parameters": [0.0], "origin": {},
    }  # fmt: skip
    with pytest.raises(ConfigError, match=TRAP):
        from_json(json.dumps(exported).encode())
    assert not trap.exists()


def test_the_list_stands_in_peer_toml_and_reads_back():
    config = replace(PeerConfig("ada", "127.0.0.1:7701"), allow=("a.b:c", "d:e"))
    assert 'allow = ["a.b:c", "d:e"]' in config_toml(config)
    assert parse_config(config_toml(config)) == config
    before = replace(config, allow=("a.b:c",))
    assert [it.split()[0] for it in config.unfollowed(before, config.privacy)] == ["allow"]


def test_a_name_of_code_is_found_wherever_it_stands():
    nested = {"a": ["b:c", {"d": ("e.f:g", "b:c")}], "h": "12:30", "i": 3, "j": "no name: no"}
    assert code_names(nested) == ["b:c", "e.f:g"]

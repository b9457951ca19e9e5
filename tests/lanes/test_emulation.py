"""What an emulated stage leaves for its record."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from greenlane.executors import Folders
from greenlane.lanes import emulation
from greenlane.lanes.context import Context
from greenlane.matrix.model import Lane


def context(folder: Path, *, emulate: bool = True) -> Context:
    names = ("source", "build", "prefix", "artifacts", "env", "home", "temporary", "ccache")
    folders = Folders(**dict.fromkeys(names, folder))
    executor: Any = SimpleNamespace(inside=folders, python="python3", name="host")
    lane = Lane(id="rocm-gfx1100", backend="rocm", arch="gfx1100", emulate=emulate)
    return cast(Context, SimpleNamespace(host=folders, executor=executor, lane=lane, emulated=emulate))


def test_the_record_says_what_the_emulator_ran(tmp_path: Path) -> None:
    found = {"schema": 1, "arch": "gfx1100", "translator": "ab", "kernels": ["_Zk"], "opcodes": {"s_endpgm": 1}}
    (tmp_path / emulation.LEFT).write_text(json.dumps(found))
    assert emulation.coverage(context(tmp_path)) == {"emulator": found}


def test_what_an_earlier_stage_ran_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / emulation.LEFT).write_text("{}")
    emulation.forget(context(tmp_path))
    assert emulation.coverage(context(tmp_path)) == {}


def test_a_lane_with_its_own_device_has_no_such_entry(tmp_path: Path) -> None:
    (tmp_path / emulation.LEFT).write_text("{}")
    assert emulation.coverage(context(tmp_path, emulate=False)) == {}
    assert emulation.wrapped(context(tmp_path, emulate=False), "true") == "true"


def test_the_command_names_the_file(tmp_path: Path) -> None:
    command = emulation.wrapped(context(tmp_path), "true")
    assert f"GREENLANE_EMULATOR_COVERAGE={tmp_path}/{emulation.LEFT} " in command
    assert "emulate --arch gfx1100 -- sh -ec true" in command

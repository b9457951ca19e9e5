"""The counts of several processes become one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from greenlane.emulator import outcome


def left(folder: Path, process: int, launches: dict[str, int], opcodes: dict[str, int]) -> None:
    kernels = [
        {"name": name, "symbol": f"_Z{name}", "launches": count, "workgroups": 2, "waves": 4, "instructions": 10}
        for name, count in launches.items()
    ]
    document = {"schema": 1, "arch": "gfx1100", "kernel_launches": launches, "kernels": kernels, "opcodes": opcodes}
    (folder / f"counts-{process}.json").write_text(json.dumps(document))


def test_launches_add_up_and_opcodes_do_not(tmp_path: Path) -> None:
    left(tmp_path, 1, {"norm": 3}, {"v_add_f32": 5})
    left(tmp_path, 2, {"norm": 1, "rope": 2}, {"v_add_f32": 5, "s_endpgm": 1})
    merged = outcome.counts(tmp_path)
    assert merged is not None
    assert merged["kernel_launches"] == {"norm": 4, "rope": 2}
    assert merged["opcodes"] == {"s_endpgm": 1, "v_add_f32": 5}
    assert [(kernel["symbol"], kernel["launches"]) for kernel in merged["kernels"]] == [("_Znorm", 4), ("_Zrope", 2)]


def test_no_launch_leaves_no_counts(tmp_path: Path) -> None:
    assert outcome.counts(tmp_path) is None
    assert outcome.findings(tmp_path) == []


def counted(kernel: str, opcodes: dict[str, int], translator: str = "t1") -> dict[str, Any]:
    return {"arch": "gfx1100", "translator": translator, "kernels": [{"symbol": kernel}], "opcodes": opcodes}


def test_coverage_grows_with_each_run(tmp_path: Path) -> None:
    path = tmp_path / "coverage.json"
    outcome.add_coverage(path, counted("_Znorm", {"v_add_f32": 5}))
    outcome.add_coverage(path, counted("_Zrope", {"v_add_f32": 2, "s_endpgm": 1}))
    found = json.loads(path.read_text())
    assert (found["arch"], found["translator"]) == ("gfx1100", "t1")
    assert found["kernels"] == ["_Znorm", "_Zrope"]
    assert found["opcodes"] == {"s_endpgm": 1, "v_add_f32": 5}


def test_coverage_of_another_translator_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "coverage.json"
    outcome.add_coverage(path, counted("_Znorm", {"v_add_f32": 5}, "t1"))
    outcome.add_coverage(path, counted("_Zrope", {"s_endpgm": 1}, "t2"))
    assert json.loads(path.read_text())["kernels"] == ["_Zrope"]


def test_a_damaged_coverage_file_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "coverage.json"
    path.write_text("{")
    outcome.add_coverage(path, counted("_Znorm", {"s_endpgm": 1}))
    assert json.loads(path.read_text())["kernels"] == ["_Znorm"]

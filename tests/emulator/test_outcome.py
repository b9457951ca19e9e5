"""The counts of several processes become one."""

from __future__ import annotations

import json
from pathlib import Path

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

"""HIP programs that know nothing of the emulator give right results on every architecture."""

from __future__ import annotations

import json

import pytest
from emulator_box import Box

pytestmark = pytest.mark.docker

SAMPLES = ("reduction", "histogram", "matmul", "prefix_sum", "stencil", "llm", "instructions", "matrix_cores")
# One of each instruction set; the nightly tier takes their siblings gfx1151 and gfx90a.
ARCHS = ("gfx1100", "gfx1201", "gfx942")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_computes_what_the_cpu_computes(box: Box, sample: str, arch: str) -> None:
    done = box.emulate(arch, box.compile(f"{sample}.hip", arch))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("sample", SAMPLES)
def test_sound_sample_has_no_findings(box: Box, sample: str) -> None:
    done = box.emulate("gfx1100", box.compile(f"{sample}.hip", "gfx1100"), sanitize=True)
    assert done.returncode == 0, done.stderr
    # A note is no finding: 4-bit blocks of 18 bytes are read at odd multiples of 2, which the hardware allows.
    assert [line for line in done.stderr.splitlines() if ": note: " not in line] == []


@pytest.mark.parametrize("order", ["reverse", "random:7"])
def test_order_of_waves_does_not_matter_to_a_sound_program(box: Box, order: str) -> None:
    env = {"GREENLANE_EMULATOR_ORDER": order}
    for sample in ("reduction", "prefix_sum", "llm"):
        assert box.emulate("gfx1100", box.compile(f"{sample}.hip", "gfx1100"), env=env).returncode == 0


def test_compressed_fat_binary_runs(box: Box) -> None:
    program = box.compile("histogram.hip", "gfx1100", "--offload-compress")
    assert box.emulate("gfx1100", program).returncode == 0


def test_program_may_launch_late_and_on_many_streams(box: Box) -> None:
    """With GREENLANE_EMULATOR_DEFERRED nothing runs before something waits for it."""
    for sample in ("histogram", "stencil"):
        done = box.emulate("gfx1100", box.compile(f"{sample}.hip", "gfx1100"), env={"GREENLANE_EMULATOR_DEFERRED": "1"})
        assert done.returncode == 0, done.stdout + done.stderr


def test_counts_name_every_kernel_that_ran(box: Box) -> None:
    program = box.compile("stencil.hip", "gfx1100")
    box.emulate("gfx1100", program, env={"GREENLANE_EMULATOR_COUNTS": "counts.json"})
    counts = json.loads(box.read("/scratch/counts.json"))
    assert counts["kernel_launches"] == {"stencil": 6}  # a graph of two launches, replayed three times
    assert counts["arch"] == "gfx1100"
    assert counts["opcodes"]["s_endpgm"] == 1


def test_program_without_code_for_the_architecture_says_which_it_has(box: Box) -> None:
    done = box.emulate("gfx1201", box.compile("reduction.hip", "gfx1100"))
    assert done.returncode != 0
    assert "no code for gfx1201" in done.stderr
    assert "it holds: gfx1100" in done.stderr


def test_second_run_translates_nothing(box: Box) -> None:
    program = box.compile("llm.hip", "gfx1100")
    box.emulate("gfx1100", program)
    before = box.run("sh", "-c", "find /scratch/cache -type f | sort").stdout
    assert box.emulate("gfx1100", program).returncode == 0
    assert box.run("sh", "-c", "find /scratch/cache -type f | sort").stdout == before

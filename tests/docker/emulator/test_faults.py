"""Each planted fault turns the run red, and the message names the kernel and the line."""

from __future__ import annotations

import pytest
from emulator_box import SAMPLES, Box

pytestmark = pytest.mark.docker


def line_of(sample: str, text: str) -> int:
    """The line of the sample that holds `text`."""
    lines = (SAMPLES / sample).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("sample", "fault", "kernel", "text", "message"),
    [
        ("reduction.hip", "-DFAULT_NO_BARRIER", "sum(", "+= part[threadIdx.x + half]", "race:"),
        ("reduction.hip", "-DFAULT_NO_BARRIER", "sum(", "+= part[threadIdx.x + half]", "uninitialised shared memory"),
        ("prefix_sum.hip", "-DFAULT_WARP_64", "scan(", "__shfl(value", "cross-lane read of lane 32 in a wave of 32"),
        (
            "stencil.hip",
            "-DFAULT_OUT_OF_BOUNDS",
            "stencil(",
            "out[at + kExtra]",
            "0 bytes past the end of an allocation of 15400",
        ),
        (
            "faults.hip",
            "-DFAULT=1",
            "lds_overrun(",
            "shared[threadIdx.x + 1]",
            "out-of-bounds store of 4 bytes at LDS byte 256",
        ),
        ("faults.hip", "-DFAULT=2", "misaligned(", "atomicAdd(odd", "misaligned atomic"),
        ("faults.hip", "-DFAULT=3", "endless(", "while (*flag == 0)", "step limit"),
        ("faults.hip", "-DFAULT=4", "after_free(", "data[threadIdx.x] = 1", "that was freed"),
        ("faults.hip", "-DFAULT=5", "trapping(", "__builtin_trap()", "trapped"),
    ],
)
def test_planted_fault_is_found(box: Box, sample: str, fault: str, kernel: str, text: str, message: str) -> None:
    env = {"GREENLANE_EMULATOR_STEP_LIMIT": "1000000"}
    done = box.emulate("gfx1100", box.compile(sample, "gfx1100", fault), sanitize=True, env=env)
    assert done.returncode != 0
    found = [line for line in done.stderr.splitlines() if f"kernel {kernel}" in line and message in line]
    assert found, done.stderr
    assert any(f"{sample}:{line_of(sample, text)}:" in line for line in found), found


def test_unknown_instruction_names_itself_the_kernel_and_the_line(box: Box) -> None:
    source = """#include <hip/hip_runtime.h>
__global__ void odd() { asm volatile("ds_gws_sema_v gds"); }
int main() { odd<<<1, 32>>>(); return hipDeviceSynchronize() == hipSuccess ? 0 : 1; }
"""
    program = box.compile(box.write("odd.hip", source), "gfx1100")
    done = box.emulate("gfx1100", program)
    assert done.returncode == 3
    assert "kernel odd()" in done.stderr
    assert "ds_gws_sema_v" in done.stderr
    assert "odd.hip:2" in done.stderr


def test_wild_pointer_without_the_sanitizer_names_the_kernel(box: Box) -> None:
    done = box.emulate("gfx1100", box.compile("faults.hip", "gfx1100", "-DFAULT=6"))
    assert done.returncode == 134
    assert "memory access fault in kernel wild(" in done.stderr


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('printf("%d", *out)', "printf, or an assertion's message (a call to the host),"),
        ("cooperative_groups::this_grid().sync()", "synchronisation of the whole grid"),
    ],
)
def test_a_service_of_the_host_that_is_lacking_is_refused_by_name(box: Box, body: str, what: str) -> None:
    source = f"""#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
__global__ void asks(int* out) {{ {body}; }}
int main() {{
  int* out;
  if (hipMalloc(&out, 4)) return 2;
  void* arguments[] = {{&out}};
  if (hipLaunchCooperativeKernel((void*)asks, dim3(2), dim3(32), arguments, 0, nullptr)) return 2;
  return hipDeviceSynchronize() == hipSuccess ? 0 : 1;
}}
"""
    done = box.emulate("gfx1100", box.compile(box.write("asks.hip", source), "gfx1100"))
    assert done.returncode == 3, done.stderr
    assert f"kernel asks(int*): {what} is not emulated" in done.stderr

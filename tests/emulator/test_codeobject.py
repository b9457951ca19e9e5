"""Code objects that hipcc made from code_objects/README.md's kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenlane.emulator import codeobject
from greenlane.emulator.errors import BadCodeObject

STORED = Path(__file__).parent / "code_objects"


def stored(arch: str) -> bytes:
    return (STORED / f"tiny.{arch}.co").read_bytes()


@pytest.mark.parametrize(("arch", "lanes"), [("gfx1100", 32), ("gfx942", 64)])
def test_kernel_descriptor_and_metadata_are_read(arch: str, lanes: int) -> None:
    code = codeobject.parse(stored(arch))
    assert code.arch == arch
    (name, kernel), *others = code.kernels().items()
    assert (name, others) == ("tiny", [])
    assert [(item[".offset"], item[".size"]) for item in kernel[".args"][:2]] == [(0, 8), (8, 4)]
    descriptor = code.descriptor("tiny")
    assert (descriptor.lanes, descriptor.lds_bytes, descriptor.scratch_bytes) == (lanes, 128, 0)
    assert kernel[".max_flat_workgroup_size"] == 128
    assert not descriptor.flushes_f32_denormals


def test_symbols_of_variables_are_found() -> None:
    code = codeobject.parse(stored("gfx1100"))
    counter = code.symbols["counter"]
    assert (counter.size, counter.is_function) == (4, False)
    assert code.read(counter.address, 4) == (7).to_bytes(4, "little")
    assert code.symbols["tiny"].is_function


def test_missing_kernel_is_said() -> None:
    with pytest.raises(BadCodeObject, match="no kernel other"):
        codeobject.parse(stored("gfx1100")).descriptor("other")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + bytes(100), bytes(200)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadCodeObject):
        codeobject.parse(data)


@settings(max_examples=60)
@given(st.integers(0, 4000), st.integers(0, 255))
def test_damaged_code_object_never_ends_in_a_traceback(at: int, value: int) -> None:
    data = bytearray(stored("gfx1100"))
    data[at % len(data)] = value
    try:
        codeobject.parse(bytes(data))
    except BadCodeObject as refused:
        assert "\n" not in str(refused)

"""Code objects come out of fat binaries, plain and compressed."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.emulator import bundle
from greenlane.emulator.errors import BadCodeObject

TARGETS = {
    "host-x86_64-unknown-linux-gnu-": b"",
    "hipv4-amdgcn-amd-amdhsa--gfx1100": b"\x7fELF rdna3",
    "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-": b"\x7fELF cdna2",
}


def plain(targets: dict[str, bytes]) -> bytes:
    """A bundle as the format's description has it: magic, count, (offset, size, length, name)..., data."""
    table = sum(24 + len(name) for name in targets)
    at = len(bundle.PLAIN) + 8 + table
    head, body = b"", b""
    for name, data in targets.items():
        head += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name.encode()
        body += data
    return bundle.PLAIN + struct.pack("<Q", len(targets)) + head + body


def compressed(blob: bytes, version: int) -> bytes:
    data = zlib.compress(blob)
    if version == 1:
        return struct.pack("<4sHHIQ", b"CCOB", 1, 0, len(blob), 7) + data
    form = "<4sHHIIQ" if version == 2 else "<4sHHQQQ"
    return struct.pack(form, b"CCOB", version, 0, struct.calcsize(form) + len(data), len(blob), 7) + data


@pytest.mark.parametrize(("arch", "code"), [("gfx1100", b"\x7fELF rdna3"), ("gfx90a", b"\x7fELF cdna2")])
def test_entry_of_the_architecture_is_found(arch: str, code: bytes) -> None:
    assert bundle.code_object(plain(TARGETS), arch) == code


@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundle_is_opened(version: int) -> None:
    assert bundle.code_object(compressed(plain(TARGETS), version), "gfx1100") == b"\x7fELF rdna3"


def test_bare_code_object_comes_back_as_it_is() -> None:
    assert bundle.code_object(b"\x7fELF bare", "gfx1100") == b"\x7fELF bare"


def test_missing_architecture_is_said_with_those_that_are_there() -> None:
    with pytest.raises(BadCodeObject, match=r"no code for gfx1201 .*gfx1100, gfx90a.*--offload-arch=gfx1201"):
        bundle.code_object(plain(TARGETS), "gfx1201")


def test_unknown_compression_is_refused() -> None:
    blob = bytearray(compressed(plain(TARGETS), 2))
    blob[6] = 9
    with pytest.raises(BadCodeObject, match="unknown method 9"):
        bundle.code_object(bytes(blob), "gfx1100")


@given(st.integers(0, 200))
def test_cut_off_bundle_is_refused_in_one_line(length: int) -> None:
    whole = plain(TARGETS)
    cut = whole[: min(length, len(whole) - 1)]
    with pytest.raises(BadCodeObject) as refused:
        bundle.code_object(cut, "gfx90a")
    assert "\n" not in str(refused.value)

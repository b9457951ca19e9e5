"""Takes the code object of one architecture out of a fat binary: a plain bundle, a compressed one, or a bare ELF."""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
import zlib

from greenlane.emulator.errors import BadCodeObject
from greenlane.errors import EnvironmentMissing

PLAIN = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
ELF = b"\x7fELF"
_ZLIB, _ZSTD = 0, 1
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"


def code_object(blob: bytes, arch: str) -> bytes:
    """The ELF for `arch`; a blob that is an ELF already comes back as it is."""
    if blob.startswith(ELF):
        return blob
    if blob.startswith(COMPRESSED):
        blob = decompress(blob)
    if not blob.startswith(PLAIN):
        raise BadCodeObject(f"neither a fat binary nor a code object: it begins with {blob[:8].hex(' ')}")
    found = {target: data for target, data in entries(blob) if not target.startswith("host") and data}
    for target, data in found.items():
        if arch_of(target) == arch:
            return data
    held = ", ".join(sorted({arch_of(target) for target in found})) or "none"
    raise BadCodeObject(f"no code for {arch} in the fat binary (it holds: {held}); compile with --offload-arch={arch}")


def arch_of(target: str) -> str:
    """
    >>> arch_of("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-")
    'gfx90a'
    """
    return target.rpartition("--")[2].partition(":")[0]


def entries(blob: bytes) -> list[tuple[str, bytes]]:
    """Target and bytes of each entry of a plain bundle."""
    found = []
    try:
        (count,) = struct.unpack_from("<Q", blob, len(PLAIN))
        at = len(PLAIN) + 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", blob, at)
            at += 24
            target = blob[at : at + length].decode()
            at += length
            if offset + size > len(blob):
                raise BadCodeObject(f"the fat binary is cut off: {target} ends at byte {offset + size} of {len(blob)}")
            found.append((target, blob[offset : offset + size]))
    except (struct.error, UnicodeDecodeError):
        raise BadCodeObject("the fat binary's table of contents is damaged") from None
    return found


def decompress(blob: bytes) -> bytes:
    """The plain bundle inside a compressed one (header versions 1 to 3)."""
    try:
        _, version, method = struct.unpack_from("<4sHH", blob)
        if version == 1:
            (size,) = struct.unpack_from("<I", blob, 8)
            start, end = 20, len(blob)
        elif version == 2:
            total, size = struct.unpack_from("<II", blob, 8)
            start, end = 24, total
        elif version == 3:
            total, size = struct.unpack_from("<QQ", blob, 8)
            start, end = 32, total
        else:
            raise BadCodeObject(f"compressed fat binary of version {version}; known are 1 to 3")
    except struct.error:
        raise BadCodeObject("the compressed fat binary is cut off") from None
    if method == _ZLIB:
        return _unzlib(blob[start:end])
    if method == _ZSTD:
        return _unzstd(blob[start:end], size)
    raise BadCodeObject(f"compressed fat binary with the unknown method {method}")


def _unzlib(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise BadCodeObject(f"the compressed fat binary is damaged: {error}") from None


def _unzstd(data: bytes, size: int) -> bytes:
    name = ctypes.util.find_library("zstd") or "libzstd.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise EnvironmentMissing("the fat binary is compressed with zstd: install libzstd1") from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    output = ctypes.create_string_buffer(size)
    written = library.ZSTD_decompress(output, size, data, len(data))
    if library.ZSTD_isError(written) or written != size or not data.startswith(_FRAME_MAGIC):
        raise BadCodeObject("the compressed fat binary is damaged: zstd can't read it")
    return output.raw

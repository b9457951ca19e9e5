"""`python -m greenlane.emulator.translate`: what the stand-in runtime starts when the cache lacks a kernel.

In a folder of the cache it takes the code object out of `blob` and translates the kernel that was asked for, with the
small ones beside it: they cost less than another start of this program. Of the large ones, variants of a template most
of all, a program launches few.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from greenlane.emulator import build, bundle, codeobject, disassembly, toolchain
from greenlane.emulator.codeobject import CodeObject
from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.kernel import KernelTranslator
from greenlane.errors import GreenlaneError

_SMALL = 1200  # bytes of machine code
_WHOLE = 400_000  # bytes of machine code of all kernels: up to here one disassembly of everything is quick


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="greenlane.emulator.translate")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--kernel")
    parser.add_argument("--sanitize", action="store_true")
    arguments = parser.parse_args(argv)
    try:
        with build.locked(arguments.folder):
            code = _code_object(arguments.folder, arguments.arch)
            if arguments.kernel:
                _translate(arguments.folder, code, arguments.kernel, sanitize=arguments.sanitize)
    except GreenlaneError as error:
        print(f"greenlane emulate: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _code_object(folder: Path, arch: str) -> CodeObject:
    path = folder / "code_object"
    if not path.exists():
        partial = folder / f"code_object.{os.getpid()}"
        partial.write_bytes(bundle.code_object((folder / "blob").read_bytes(), arch))
        codeobject.parse(partial.read_bytes())
        partial.replace(path)
    return codeobject.parse(path.read_bytes())


def _translate(folder: Path, code: CodeObject, kernel: str, *, sanitize: bool) -> None:
    tools = toolchain.find()
    total = sum(symbol.size for symbol in code.symbols.values() if symbol.is_function)
    wanted = [name for name in code.kernels() if name == kernel or code.symbols[name].size <= _SMALL]
    wanted = [name for name in wanted if not _target(folder, name, sanitize=sanitize).exists()]
    wanted.sort(key=lambda name: -code.symbols[name].size)
    callees = tuple(code.device_functions())
    some = (*wanted, *callees) if total > _WHOLE else ()
    listing = disassembly.disassemble(tools.objdump, folder / "code_object", some)
    with ThreadPoolExecutor(build.cores()) as pool:
        list(pool.map(lambda name: _one(folder, code, name, listing, callees, sanitize=sanitize), wanted))


def _one(
    folder: Path,
    code: CodeObject,
    name: str,
    listing: Mapping[str, Sequence[Instruction]],
    callees: tuple[str, ...],
    *,
    sanitize: bool,
) -> None:
    """Leaves a shared library, or a file that says why there is none."""
    target = _target(folder, name, sanitize=sanitize)
    tools = toolchain.find()
    try:
        functions = {name: listing[name]} | (
            {other: listing[other] for other in callees} if _calls(listing[name]) else {}
        )
        translator = KernelTranslator(code, name, functions)
        source = translator.translate().source
        lanes = translator.registers.lanes
        header = build.precompiled(tools, folder.parent.parent, lanes, sanitize=sanitize)
        build.kernel(tools, source, target, header, lanes, sanitize=sanitize)
    except UnknownInstruction as error:  # a compiler that fails is no property of the kernel: it is raised, not kept
        where = _source_line(tools, folder, error, functions)
        target.with_suffix(".error").write_text(f"{error}{where}")


def _calls(instructions: Sequence[Instruction]) -> bool:
    return any(one.mnemonic in ("s_swappc_b64", "s_setpc_b64") for one in instructions)


def _source_line(
    tools: toolchain.Toolchain, folder: Path, error: UnknownInstruction, functions: Mapping[str, Sequence[Instruction]]
) -> str:
    """Where the instruction that is not known comes from, if the code object has line tables."""
    import subprocess

    address = next((one.address for function in functions.values() for one in function if one.text == error.text), None)
    if address is None or not tools.symbolizer:
        return ""
    command = [tools.symbolizer, f"--obj={folder / 'code_object'}", "--functions=none", "--inlines", hex(address)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    frames = [line.rpartition(":")[0] for line in output.splitlines() if line and not line.startswith("??")]
    own = [frame for frame in frames if not frame.startswith(("/usr/", "/opt/rocm"))]
    return f" at {(own or frames)[0]}" if frames else " (no line table: compile with -gline-tables-only)"


def _target(folder: Path, kernel: str, *, sanitize: bool) -> Path:
    return folder / f"{name_hash(kernel):016x}{'-sanitize' if sanitize else ''}.so"


def name_hash(name: str) -> int:
    """FNV-1a over 64 bits, as native/hip/loader.cpp computes it.

    >>> hex(name_hash("a"))
    '0xaf63dc4c8601ec8c'
    """
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


if __name__ == "__main__":
    sys.exit(main())

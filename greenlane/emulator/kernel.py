"""One kernel as a C++ file: what the hardware sets up before the first instruction, then the instructions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from greenlane.emulator import matrix_ops, memory, scalar, vector, vector_special
from greenlane.emulator.codeobject import CodeObject, Descriptor
from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers

_TRANSLATORS = (vector.translate, scalar.translate, vector_special.translate, memory.translate, matrix_ops.translate)
_BRANCHES = {
    "execz": "EXEC == 0",
    "execnz": "EXEC != 0",
    "vccz": "VCC == 0",
    "vccnz": "VCC != 0",
    "scc0": "!scc",
    "scc1": "scc",
}
_CALL_STACK_BYTES = 16384  # what a lane gets where calls make the need unknown
# Bits of the kernel code properties, and how many SGPRs each takes, in the order in which they are loaded.
_USER_SGPRS = (
    (0, "private_segment_buffer", 4),
    (1, "dispatch_ptr", 2),
    (2, "queue_ptr", 2),
    (3, "kernarg_segment_ptr", 2),
    (4, "dispatch_id", 2),
    (5, "flat_scratch_init", 2),
    (6, "private_segment_size", 1),
)
# The numbers are those of ArgumentKind in native/kernel/wave.h.
_ARGUMENTS = {
    "by_value": 0,
    "global_buffer": 0,
    "dynamic_shared_pointer": 0,
    "hidden_block_count_x": 1,
    "hidden_block_count_y": 2,
    "hidden_block_count_z": 3,
    "hidden_group_size_x": 4,
    "hidden_group_size_y": 5,
    "hidden_group_size_z": 6,
    "hidden_remainder_x": 7,
    "hidden_remainder_y": 8,
    "hidden_remainder_z": 9,
    "hidden_grid_dims": 10,
    "hidden_dynamic_lds_size": 11,
    "hidden_private_base": 12,
    "hidden_shared_base": 13,
    "hidden_heap_v1": 14,
    "hidden_hostcall_buffer": 16,
    "hidden_printf_buffer": 16,
    "hidden_multigrid_sync_arg": 17,
}
_ZERO = 15  # offsets, queues and the like: zero serves


@dataclass(frozen=True)
class Translation:
    """A kernel as C++ and what it is made of."""

    source: str
    opcodes: Mapping[str, int]


class KernelTranslator:
    """Translates one kernel with the device functions that it may call."""

    def __init__(self, code: CodeObject, name: str, functions: Mapping[str, Sequence[Instruction]]) -> None:
        self.code = code
        self.name = name
        self.descriptor = code.descriptor(name)
        self.metadata = code.kernels()[name]
        generation = {"9": 9, "1": 11}[code.arch[3]] if not code.arch.startswith("gfx12") else 12
        self.registers = Registers(self.descriptor.lanes, generation)
        self.instructions = without_padding([one for function in functions.values() for one in function])
        self.entry = functions[name][0].address
        self.opcodes: Counter[str] = Counter()
        self.has_barrier = self.calls = False

    def translate(self) -> Translation:
        body = self._body()
        return Translation(self._file(body), dict(sorted(self.opcodes.items())))

    def _body(self) -> list[str]:
        self.calls = any(_is_indirect(one) for one in self.instructions)
        labels = self._labels()
        lines: list[str] = []
        run = 0
        for one in self.instructions:
            if one.address in labels:
                lines += [*_counted(run), f"at_{one.address:x}:;"]
                run = 0
            run += 1
            branch = self._branch(one)
            if branch is not None:
                self._note(one)
                lines += [*_counted(run), branch]
                run = 0
            else:
                lines.append(f"  {self._statement(one)}")
        return lines + _counted(run)

    def _labels(self) -> set[int]:
        targets = {one.target for one in self.instructions if one.target is not None}
        if self.calls:
            targets |= {one.end for one in self.instructions if _is_indirect(one)} | self._function_starts()
        targets.add(self.entry)
        known = {one.address for one in self.instructions}
        for one in self.instructions:
            if one.target is not None and one.target not in known:
                raise UnknownInstruction(one.text, "a jump out of the kernel")
        return {target for target in targets if target in known}

    def _function_starts(self) -> set[int]:
        return {self.code.symbols[name].address for name in self.code.device_functions()}

    def _branch(self, one: Instruction) -> str | None:
        name = one.mnemonic
        if name in ("s_endpgm", "s_endpgm_saved"):
            return "  goto finish;"
        if name == "s_setpc_b64":
            return f"  jump = {self.registers.s64(one.operands[0])} - wave.image; goto dispatch;"
        if name in ("s_swappc_b64", "s_call_b64"):
            kept = self.registers.set_s64(one.operands[0], f"wave.image + {one.end:#x}")
            if name == "s_call_b64":
                return f"  {kept} goto at_{one.target:x};"
            return f"  jump = {self.registers.s64(one.operands[1])} - wave.image; {kept} goto dispatch;"
        if not name.startswith(("s_branch", "s_cbranch_")):
            return None
        if one.target is None:
            raise UnknownInstruction(one.text, "a jump without a target")
        back = f"if (steps > wave.step_limit) wave.host->stop(&wave, Finding::kStepLimit, {one.address:#x}); "
        go = f"{back if one.target <= one.address else ''}goto at_{one.target:x};"
        if name == "s_branch":
            return f"  {go}"
        condition = _BRANCHES.get(name.removeprefix("s_cbranch_"))
        if condition is None:
            raise UnknownInstruction(one.text)
        return f"  if ({condition}) {{ {go} }}"

    def _statement(self, one: Instruction) -> str:
        if one.second is not None:
            return self._dual(one, one.second)
        self._note(one)
        for translator in _TRANSLATORS:
            try:
                code = translator(one, self.registers)
            except UnknownInstruction as error:
                raise UnknownInstruction(one.text, error.why or error.text) from None
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise UnknownInstruction(one.text, f"unexpected form: {error}") from None
            if code is not None:
                return f"{code}  // {one.text}"
        raise UnknownInstruction(one.text)

    def _dual(self, first: Instruction, second: Instruction) -> str:
        """Both halves read before either writes."""
        from dataclasses import replace

        target = first.operands[0]
        name = self.registers.v32(target)
        held = replace(first, second=None, operands=("dual", *first.operands[1:]))
        a, b = self._statement(held), self._statement(second)
        return f"{{ U32 dual = {name}; {a}\n    {b}\n    {name} = dual; }}"

    def _note(self, one: Instruction) -> None:
        self.opcodes[one.mnemonic] += 1
        if one.mnemonic in ("s_barrier", "s_barrier_wait", "s_sleep"):
            self.has_barrier = True

    # The file around the body

    def _file(self, body: list[str]) -> str:
        setup = self._setup()
        scalars = ", ".join(
            f"{name} = 0" for name in sorted(self.registers.scalars | {"exec_lo", "exec_hi", "vcc_lo", "vcc_hi"})
        )
        vectors = ", ".join(f"{name} = splat(0)" for name in sorted(self.registers.vectors | {"v0"}))
        wide = self.registers.lanes == 64
        return "\n".join(
            [
                f"// {self.name} for {self.code.arch}, translated.",
                f"#define GREENLANE_LANES {self.registers.lanes}",
                '#include "kernel.h"',
                "using namespace greenlane;",
                f"#define EXEC {'pair(exec_lo, exec_hi)' if wide else 'exec_lo'}",
                f"#define VCC {'pair(vcc_lo, vcc_hi)' if wide else 'vcc_lo'}",
                "static void run(Wave* of) {",
                "  Wave& wave = *of;",
                f"  u32 {scalars};",
                f"  U32 {vectors};",
                "  bool scc = false; u64 steps = wave.instructions; u64 jump = 0; (void)scc; (void)jump;",
                *setup,
                f"  goto at_{self.entry:x};",
                *body,
                *self._dispatcher(),
                "finish:",
                "  wave.instructions = steps;",
                "}",
                *self._table(),
                "",
            ]
        )

    def _dispatcher(self) -> list[str]:
        """Calls and returns jump to an address: a switch over the places where one may land."""
        if not self.calls:
            return []
        cases = [f"    case {address:#x}: goto at_{address:x};" for address in sorted(self._labels())]
        stop = "    default: wave.host->stop(&wave, Finding::kNullCode, (u32)jump);"
        return ["  goto finish;", "dispatch:", "  switch (jump) {", *cases, stop, "  }"]

    def _setup(self) -> list[str]:
        """User SGPRs, workgroup numbers, work-item numbers and the first exec mask."""
        lines, at = [], 0
        for bit, what, size in _USER_SGPRS:
            if self.descriptor.has(bit):
                lines += self._user_sgprs(what, at)
                at += size
        lines += self._preloaded(at)
        lines += self._workgroup_numbers()
        lines += self._work_items(self.descriptor)
        return lines

    def _user_sgprs(self, what: str, at: int) -> list[str]:
        pointers = {"kernarg_segment_ptr": "(u64)wave.kernarg", "dispatch_ptr": "(u64)wave.dispatch_packet"}
        if what in pointers:
            return [f"  {self.registers.set_s64(f's[{at}:{at + 1}]', pointers[what])}"]
        if what == "private_segment_size":
            return [f"  {self.registers.set_s32(f's{at}', 'wave.scratch_bytes')}"]
        return []

    def _preloaded(self, at: int) -> list[str]:
        """Kernel arguments that arrive in SGPRs: length in bits 6:0, first dword in bits 15:7."""
        length, offset = self.descriptor.preload & 127, self.descriptor.preload >> 7
        return [
            f"  {self.registers.set_s32(f's{at + index}', f'((const u32*)wave.kernarg)[{offset + index}]')}"
            for index in range(length)
        ]

    def _workgroup_numbers(self) -> list[str]:
        if self.registers.generation == 12:
            self.registers.scalars |= {"ttmp7", "ttmp8", "ttmp9"}
            return [
                "  ttmp9 = wave.group[0]; ttmp7 = (wave.group[1] & 0xffff) | wave.group[2] << 16;",
                "  ttmp8 = wave.index << 25; (void)ttmp7; (void)ttmp8; (void)ttmp9;",
            ]
        lines, at = [], self.descriptor.user_sgprs
        for bit, axis in ((7, 0), (8, 1), (9, 2)):
            if self.descriptor.rsrc2 >> bit & 1:
                lines.append(f"  {self.registers.set_s32(f's{at}', f'wave.group[{axis}]')}")
                at += 1
        return lines

    def _work_items(self, descriptor: Descriptor) -> list[str]:
        axes = descriptor.rsrc2 >> 11 & 3
        parts = ["thread % wave.group_size[0]"]
        if axes > 0:
            parts.append("thread / wave.group_size[0] % wave.group_size[1] << 10u")
        if axes > 1:
            parts.append("thread / (wave.group_size[0] * wave.group_size[1]) << 20u")
        packed = " | ".join(f"({part})" for part in parts)
        self.registers.vectors.add("v0")
        return [
            f"  {{ const U32 thread = lane_numbers() + wave.index * {self.registers.lanes}u; v0 = {packed};",
            f"    const u32 left = wave.threads - wave.index * {self.registers.lanes}u;",
            "    const Mask active = left >= (u32)kLanes ? kAllLanes : (Mask{1} << left) - 1;",
            "    exec_lo = (u32)active; exec_hi = (u32)((u64)active >> 32); }",
        ]

    def _table(self) -> list[str]:
        """What the runtime reads: see Kernel in native/kernel/wave.h."""
        arguments = [argument(item) for item in self.metadata.get(".args", [])]
        rows = ", ".join(f"{{{offset}, {size}, {kind}}}" for offset, size, kind in arguments) or "{0, 0, 0}"
        opcodes = json.dumps("".join(f"{name} {count}\n" for name, count in sorted(self.opcodes.items())))
        dynamic_stack = self.calls or self.metadata.get(".uses_dynamic_stack", False)
        scratch = max(self.descriptor.scratch_bytes, _CALL_STACK_BYTES if dynamic_stack else 0)
        numbers = (
            self.registers.lanes,
            "run",
            int(self.has_barrier),
            self.descriptor.lds_bytes,
            scratch,
            self.descriptor.kernarg_bytes,
            self.metadata.get(".max_flat_workgroup_size", 1024),
            self.metadata.get(".vgpr_count", 0),
            self.metadata.get(".sgpr_count", 0),
            int(self.descriptor.flushes_f32_denormals),
            len(arguments),
        )
        return [
            f"static const Argument arguments[] = {{{rows}}};",
            f'extern "C" const Kernel greenlane_kernel = {{kKernelAbi, {", ".join(map(str, numbers))}, arguments,',
            f"  {opcodes}}};",
        ]


def argument(item: Mapping[str, Any]) -> tuple[int, int, int]:
    """Offset, size and kind of a kernel argument; an unknown hidden one is zero."""
    return item[".offset"], item[".size"], _ARGUMENTS.get(item[".value_kind"], _ZERO)


def _is_indirect(one: Instruction) -> bool:
    return one.mnemonic in ("s_setpc_b64", "s_swappc_b64", "s_call_b64")


def _counted(instructions: int) -> list[str]:
    return [f"  steps += {instructions};"] if instructions else []


def without_padding(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Without what lies behind the last instruction: `s_code_end`, or zeros, which are listed as `v_illegal`."""
    return [one for one in instructions if one.mnemonic not in ("s_code_end", "v_illegal")]

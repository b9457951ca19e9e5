"""A second count of kernel launches, by somebody other than the engine: the emulator, or a profiler's trace."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from greenlane.gates.commands import Failed
from greenlane.gates.contract import Program, Ran
from greenlane.matrix.gates import Witness
from greenlane.record.model import Outcome

EMULATOR_COUNTS = "GREENLANE_EMULATOR_COUNTS"
ROCPROF = (
    "rocprofv3 --kernel-trace --output-format csv --output-directory {stem} --output-file trace -- sh -c {command}"
)
NSYS = (
    "nsys profile --trace=cuda --cuda-graph-trace=node --force-overwrite=true --output={stem} sh -c {command}"
    " && nsys stats --report cuda_gpu_kern_sum --format csv --force-export=true --output {stem} {stem}.nsys-rep >&2"
)


@dataclass(frozen=True)
class Watcher:
    """Counts over every run of one arm."""

    witness: Witness
    artifacts: Path
    stem: str
    total: Counter[str] = field(default_factory=Counter)  # launches by kernel name as the witness spells it

    def watching(self, program: Program) -> Program:
        """The program, run under the witness."""

        def watched(command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
            self.forget()
            ran = program(self.wrapped(command), env={**(env or {}), **self.env()}, timeout_s=timeout_s)
            if ran.code == 0 and not ran.timed_out:
                self.total.update(self.counts())
            return ran

        return watched

    def env(self) -> dict[str, str]:
        return {EMULATOR_COUNTS: f"{self.stem}.json"} if self.witness.kind == "emulator" else {}

    def wrapped(self, command: str) -> str:
        if self.witness.kind == "emulator":
            return command
        form = ROCPROF if self.witness.kind == "rocprofv3" else NSYS
        return form.replace("{stem}", self.stem).replace("{command}", shlex.quote(command))

    def forget(self) -> None:
        """A trace of an earlier run must never be read as this one's."""
        for file in self.files():
            file.unlink()

    def files(self) -> list[Path]:
        patterns = {
            "emulator": f"{self.stem}.json",
            "rocprofv3": f"{self.stem}/**/*kernel_trace.csv",
            "nsys": f"{self.stem}*cuda_gpu_kern_sum.csv",
        }
        return sorted(self.artifacts.glob(patterns[self.witness.kind]))

    def counts(self) -> Counter[str]:
        files = self.files()
        if not files:
            raise Failed(Outcome.VOID, f"the witness left nothing: {self.witness.kind} wrote no {self.stem} file")
        found: Counter[str] = Counter()
        for file in files:
            try:
                found.update(READERS[self.witness.kind](file.read_text(encoding="utf-8", errors="replace")))
            except (ValueError, KeyError, TypeError) as error:
                raise Failed(Outcome.VOID, f"{file.name} is not a {self.witness.kind} count: {error}") from None
        return found


def emulator(text: str) -> Counter[str]:
    """`{"kernel": launches}`, or that under `kernel_launches`."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    counts = document.get("kernel_launches", document)
    return Counter({str(name): int(count) for name, count in counts.items()})


def rocprofv3(text: str) -> Counter[str]:
    """One row per dispatch, with the kernel's name."""
    return Counter(row["Kernel_Name"] for row in rows(text, "Kernel_Name"))


def nsys(text: str) -> Counter[str]:
    """One row per kernel, with the number of instances."""
    found: Counter[str] = Counter()
    for row in rows(text, "Instances"):
        found[row["Name"]] += int(row["Instances"].replace(",", ""))
    return found


def rows(text: str, column: str) -> list[dict[str, str]]:
    """The table in a CSV text, which may have lines of other text above it."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if column in next(csv.reader([line]), [])), None)
    if start is None:
        raise ValueError(f"no column {column}")
    table = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    return [row for row in table if row.get(column)]


READERS = {"emulator": emulator, "rocprofv3": rocprofv3, "nsys": nsys}


def by_counter(kernels: Mapping[str, int], counters: Iterable[str], names: Mapping[str, str]) -> dict[str, int]:
    """Launches by the engine's counter names; `names` holds patterns for those that no kernel is called after."""
    patterns = {counter: re.compile(names.get(counter) or default_pattern(counter)) for counter in counters}
    return {
        counter: sum(count for kernel, count in kernels.items() if pattern.search(kernel))
        for counter, pattern in patterns.items()
    }


def default_pattern(counter: str) -> str:
    """
    >>> bool(re.search(default_pattern("gemv"), "void vt::gpu::gemv_kernel<float>(float*)"))
    True
    >>> bool(re.search(default_pattern("gemv"), "_ZN2vt3gpu11gemv_kernelIfEEvPf"))
    True
    >>> bool(re.search(default_pattern("gemv"), "_ZN2vt3gpu20gemv_silu_mul_kernelIfEEvPf"))
    False
    """
    spelt = (counter, f"{counter}_kernel")
    mangled = "|".join(f"(?<![0-9]){len(name)}{re.escape(name)}" for name in spelt)
    plain = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in spelt)
    return f"{mangled}|{plain}"

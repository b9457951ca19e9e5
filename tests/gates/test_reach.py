"""The reach gate and its witnesses, each broken once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from greenlane.gates import reach, witness
from greenlane.gates.contract import GateContext, Ran
from greenlane.matrix.gates import Witness
from greenlane.matrix.model import Lane
from greenlane.record.model import Outcome, StageResult
from tests.gates.engine_double import EngineDouble

CONFIG: dict[str, Any] = {
    "command": "generate --prompts {prompts} {options}",
    "workload": {"prompts": [{"prompt": "hello"}], "max_tokens": 4},
    "on": {"options": "--mirror on"},
    "off": {"options": "--mirror off"},
    "must_reach": ["combine"],
}
ROCPROF = """"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Start_Timestamp"
"KERNEL_DISPATCH","Agent 1",1,77,1,5,"void vt::gpu::combine_kernel<float, 4>(vt::CombineArgs)",100
"KERNEL_DISPATCH","Agent 1",1,77,2,6,"void vt::gpu::rms_norm_kernel<float>(float*, int)",120
"KERNEL_DISPATCH","Agent 1",1,77,3,5,"void vt::gpu::combine_kernel<float, 4>(vt::CombineArgs)",140
"""
NSYS = """Generating SQLite file run.sqlite from run.nsys-rep

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
70.0,70000,"1,002",70.0,70.0,60,80,1.0,"void vt::gpu::rms_norm_kernel<float>(float *, int)"
30.0,30000,7,30.0,30.0,20,40,1.0,vt::gpu::combine_kernel(vt::CombineArgs)
"""


def run(engine: Any, context: GateContext, **changes: Any) -> StageResult:
    return reach.run(CONFIG | changes, engine, context)


def reason(result: StageResult) -> str:
    return result.reason or ""


def test_a_kernel_that_runs_only_with_the_feature_on_is_reached(engine: EngineDouble, context: GateContext) -> None:
    result = run(engine, context)
    assert result.outcome is Outcome.PASS
    assert result.measurements["on"]["launches"] == {"combine": 7}
    assert result.measurements["off"]["launches"] == {"combine": 0}


def test_a_counter_that_does_not_move_is_red(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = lambda document, words, env: document["kernel_launches"].pop("combine", None)
    result = run(engine, context)
    assert result.outcome is Outcome.FAIL and "dead code" in reason(result)
    assert result.first_error is not None


def test_a_kernel_that_runs_with_the_feature_off_too_is_red(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = lambda document, words, env: document["kernel_launches"].update(combine=3)
    assert "3 times with the feature off" in reason(run(engine, context))


def test_swapped_arms_are_red(engine: EngineDouble, context: GateContext) -> None:
    assert run(engine, context, on=CONFIG["off"], off=CONFIG["on"]).outcome is Outcome.FAIL


def test_a_forbidden_kernel_is_red(engine: EngineDouble, context: GateContext) -> None:
    result = run(engine, context, must_not_reach=["rms_norm"])
    assert result.outcome is Outcome.FAIL and "rms_norm must not be reached" in reason(result)


def test_code_that_no_run_reaches_is_inert(engine: EngineDouble, context: GateContext) -> None:
    result = run(engine, context, must_reach=[], watch=["ported_kernel"])
    assert result.outcome is Outcome.INERT and "ported_kernel" in reason(result)
    assert run(engine, context, must_reach=[], watch=["ported_kernel", "combine"]).outcome is Outcome.PASS


@pytest.mark.parametrize(
    "without",
    [lambda document: document.pop("kernel_launches"), lambda document: document.update(kernel_launches=None)],
    ids=["absent", "null"],
)
def test_an_engine_without_counters_is_void_until_a_witness_counts(
    without: Callable[[dict[str, Any]], object], engine: EngineDouble, context: GateContext
) -> None:
    engine.breakage = lambda document, words, env: without(document)
    result = run(engine, context)
    assert result.outcome is Outcome.VOID and "only: true" in reason(result)


def test_an_engine_that_counts_and_launched_nothing_holds_dead_code(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = lambda document, words, env: document.update(kernel_launches={})
    result = run(engine, context)
    assert result.outcome is Outcome.FAIL and "dead code in this lane" in reason(result)


def test_a_crash_is_red_with_the_tail(engine: EngineDouble, context: GateContext) -> None:
    engine.ran = Ran(139, "", "invalid device function")
    result = run(engine, context)
    assert result.outcome is Outcome.FAIL and "invalid device function" in reason(result)


def test_the_exact_gate_lends_its_command_and_prompts(engine: EngineDouble, context: GateContext) -> None:
    exact = {
        "generate": "generate --prompts {prompts} {options}",
        "workloads": {"main": {"prompts": [{"prompt": "hello"}]}},
        "arms": {"on": {}, "golden": {"golden": "g.json"}},
        "compare": {"golden": {"left": "on", "right": "golden"}},
    }
    lane = Lane("rocm-gfx1100", "rocm", gates={"exact": exact})
    config = {key: value for key, value in CONFIG.items() if key not in ("command", "workload")}
    assert reach.run(config, engine, replace(context, lane=lane)).outcome is Outcome.PASS


def counting(context: GateContext, combine: int, rms_norm: int = 100) -> Any:
    """An emulator that writes its own counts beside the engine's."""

    def write(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        on = combine if "on" in words else 0
        counts = {"_ZN2vt3gpu14combine_kernelE": on, "_ZN2vt3gpu15rms_norm_kernelIfEEvPf": rms_norm}
        (context.artifacts / env["GREENLANE_EMULATOR_COUNTS"]).write_text(json.dumps(counts))

    return write


def test_in_an_emulated_lane_the_emulator_confirms_the_counts(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = counting(context, combine=7)
    result = run(engine, replace(context, emulated=True), watch=["rms_norm"])
    assert result.outcome is Outcome.PASS
    assert result.measurements["on"]["witness"] == "emulator"
    assert result.measurements["on"]["launches"] == {"combine": 7, "rms_norm": 100}


def test_an_engine_that_counts_what_never_ran_is_red(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = counting(context, combine=0)
    result = run(engine, replace(context, emulated=True))
    assert result.outcome is Outcome.FAIL
    assert "the engine says combine was launched 7 times, emulator counted 0" in reason(result)


def test_a_witness_that_leaves_nothing_is_void(engine: EngineDouble, context: GateContext) -> None:
    result = run(engine, replace(context, emulated=True))
    assert result.outcome is Outcome.VOID and "left nothing" in reason(result)


def test_a_count_of_an_earlier_run_is_not_read(engine: EngineDouble, context: GateContext) -> None:
    (context.artifacts / "reach-on.json").write_text('{"combine_kernel": 7}')
    assert run(engine, replace(context, emulated=True)).outcome is Outcome.VOID


def test_a_witness_that_writes_nonsense_is_void(engine: EngineDouble, context: GateContext) -> None:
    def nonsense(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        (context.artifacts / env["GREENLANE_EMULATOR_COUNTS"]).write_text("[1, 2]")

    engine.breakage = nonsense
    result = run(engine, replace(context, emulated=True))
    assert result.outcome is Outcome.VOID and "is not a emulator count" in reason(result)


class Profiled:
    """An engine without counters under a profiler that writes `trace` when the mirror is on."""

    def __init__(self, artifacts: Path, file: str, trace: str, empty: str) -> None:
        self.double, self.artifacts, self.file, self.trace, self.empty = (
            EngineDouble(artifacts),
            artifacts,
            file,
            trace,
            empty,
        )
        self.commands: list[str] = []

    def __call__(self, command: str, **how: Any) -> Ran:
        self.commands.append(command)
        words = shlex.split(command)
        inner = words[words.index("-c") + 1]
        ran = self.double(inner, **how)
        document = json.loads(ran.stdout) | {"kernel_launches": {}}
        on = "--mirror on" in inner
        path = self.artifacts / self.file.replace("ARM", "reach-on" if on else "reach-off")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.trace if on else self.empty)
        return Ran(0, json.dumps(document), "")


def test_a_rocprofv3_trace_stands_in_for_counters(context: GateContext) -> None:
    empty = ROCPROF.splitlines()[0] + "\n" + ROCPROF.splitlines()[2] + "\n"
    engine = Profiled(context.artifacts, "ARM/host/trace_kernel_trace.csv", ROCPROF, empty)
    result = run(engine, context, witness={"kind": "rocprofv3", "only": True})
    assert result.outcome is Outcome.PASS
    assert result.measurements["on"]["launches"] == {"combine": 2}
    assert engine.commands[0].startswith("rocprofv3 --kernel-trace")


def test_an_nsys_summary_stands_in_for_counters(context: GateContext) -> None:
    empty = "\n".join(NSYS.splitlines()[:-1]) + "\n"
    engine = Profiled(context.artifacts, "ARM_cuda_gpu_kern_sum.csv", NSYS, empty)
    result = run(engine, context, witness={"kind": "nsys", "only": True}, watch=["rms_norm"])
    assert result.outcome is Outcome.PASS
    assert result.measurements["on"]["launches"] == {"combine": 7, "rms_norm": 1002}


def test_a_trace_without_the_kernel_is_red(context: GateContext) -> None:
    empty = ROCPROF.splitlines()[0] + "\n" + ROCPROF.splitlines()[2] + "\n"
    engine = Profiled(context.artifacts, "ARM/trace_kernel_trace.csv", empty, empty)
    assert run(engine, context, witness={"kind": "rocprofv3", "only": True}).outcome is Outcome.FAIL


def test_a_trace_of_another_form_is_void(context: GateContext) -> None:
    engine = Profiled(context.artifacts, "ARM/trace_kernel_trace.csv", "nothing, here\n", "")
    result = run(engine, context, witness={"kind": "rocprofv3", "only": True})
    assert result.outcome is Outcome.VOID and "no column Kernel_Name" in reason(result)


def test_a_counter_may_have_its_own_pattern() -> None:
    kernels = {"ampere_sgemm_128x64": 3, "cutlass::Kernel2<gemm>": 2, "memset": 1}
    found = witness.by_counter(kernels, ["gemm"], {"gemm": r"sgemm|cutlass.*gemm"})
    assert found == {"gemm": 5}


def test_a_command_with_quotes_survives_the_profiler(tmp_path: Path) -> None:
    watcher = witness.Watcher(Witness(kind="rocprofv3"), tmp_path, "run")
    wrapped = watcher.wrapped("A=1 python -c 'print(1)' \"{prompts}\"")
    assert shlex.split(wrapped)[-1] == "A=1 python -c 'print(1)' \"{prompts}\""


def test_launches_of_several_processes_are_added_up_on_both_sides(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = counting(context, combine=7)
    prompts = [{"prompt_token_ids": [1, 2]}, {"prompt_token_ids": [3]}]
    command = "generate --prompts {prompts} {options} --only {prompt_ids}"
    workload = {"prompts": prompts, "max_tokens": 4}
    result = run(engine, replace(context, emulated=True), command=command, workload=workload)
    assert result.outcome is Outcome.PASS
    assert result.measurements["on"]["launches"] == {"combine": 14}

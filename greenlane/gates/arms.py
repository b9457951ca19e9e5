"""Runs one arm of a comparison: the lane's program, its base, a golden file or an oracle; gives a generation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlane.gates import commands, generation
from greenlane.gates.adapters import adapter
from greenlane.gates.commands import Failed, filled, quoted
from greenlane.gates.contract import GateContext, Program
from greenlane.gates.generation import Answer, Generation, Identity, Unusable
from greenlane.gates.workload import Asked
from greenlane.matrix.gates import Arm, Oracle, Workload
from greenlane.record.model import Outcome

ONE_PROMPT = ("{prompt}", "{prompt_ids}")


@dataclass(frozen=True)
class Request:
    """Everything that an arm is asked."""

    workload_name: str
    workload: Workload
    asked: tuple[Asked, ...]

    @property
    def limits(self) -> dict[str, int]:
        return {one.name: one.max_tokens for one in self.asked}


@dataclass(frozen=True)
class Runner:
    """Runs arms for one gate."""

    generate: str
    timeout_s: float
    program: Program
    context: GateContext

    def run(self, name: str, arm: Arm, request: Request) -> Generation:
        if arm.golden is not None:
            return golden(self.context.source / arm.golden, request.asked)
        if arm.oracle is not None:
            return self.oracle(name, arm.oracle, arm, request)
        program = self.base() if arm.base else self.program
        return self.answers(name, arm.command or self.generate, program, arm, request)

    def base(self) -> Program:
        if self.context.base is None:
            raise Failed(Outcome.VOID, "the base arm needs a base: run with --base REV")
        return self.context.base()

    def oracle(self, name: str, oracle: Oracle, arm: Arm, request: Request) -> Generation:
        command = oracle.command or f"{adapter(oracle, self.context)} --prompts {{prompts}}"
        try:
            found = self.answers(f"oracle {name}", command, self.program, arm, request)
        except Failed as failure:
            raise Failed(Outcome.VOID, failure.reason, failure.tail) from None  # the instrument, not what it measures
        spoke = found.oracle or Identity(name=oracle.adapter or name, mode=oracle.mode)
        if spoke.mode and spoke.mode != oracle.mode:
            raise Failed(Outcome.VOID, f"oracle {name} ran in mode {spoke.mode!r}; the matrix says {oracle.mode!r}")
        if oracle.version is not None and spoke.version != oracle.version:
            told = spoke.version or "no version"
            raise Failed(Outcome.VOID, f"oracle {name} says {told}; the matrix says version {oracle.version}")
        return found.model_copy(update={"oracle": spoke.model_copy(update={"mode": oracle.mode})})

    def answers(self, name: str, command: str, program: Program, arm: Arm, request: Request) -> Generation:
        copies = request.asked * arm.repeat
        steps = arrivals(request, arm)
        if arm.one_by_one or any(holder in command for holder in ONE_PROMPT):
            runs = [self.once(name, command, program, arm, request, [one], ()) for one in copies]
        else:
            runs = [self.once(name, command, program, arm, request, copies, steps)]
        found = last_copy(name, merged(runs), request.asked)
        if arm.repeat_after_step is not None:
            require_hit(name, found)
        return found

    def once(
        self,
        name: str,
        command: str,
        program: Program,
        arm: Arm,
        request: Request,
        asked: Sequence[Asked],
        steps: tuple[int, ...],
    ) -> Generation:
        stem = f"{generation.slug(name)}-{generation.slug(request.workload_name)}"
        output = self.context.artifacts / f"{stem}-output.json"
        values = self.values(stem, arm, request, asked, steps)
        if steps and "{arrivals}" not in command:
            raise Failed(Outcome.VOID, f"{name}: the workload fixes arrivals, but the command has no {{arrivals}}")
        output.unlink(missing_ok=True)
        ran = commands.run(program, filled(command, values), name, env=arm.env, timeout_s=self.timeout_s)
        text = read(output, name) if "{output}" in command else ran.stdout
        try:
            found = generation.parse(text)
        except Unusable as error:
            raise Failed(Outcome.VOID, f"{name}: {error}", commands.tail(ran)) from None
        if len(found.requests) != len(asked):
            counted = f"{name}: {len(asked)} prompts asked, {len(found.requests)} answered"
            raise Failed(Outcome.VOID, counted, commands.tail(ran))
        return found

    def values(
        self, stem: str, arm: Arm, request: Request, asked: Sequence[Asked], steps: tuple[int, ...]
    ) -> dict[str, str]:
        prompts, when = f"{stem}-prompts.json", f"{stem}-arrivals.json"
        write(self.context.artifacts / prompts, [one.to_json() for one in asked])
        write(self.context.artifacts / when, [{"step": step} for step in steps or [0] * len(asked)])
        first = asked[0]
        seed = request.workload.seed
        return {
            "prompts": prompts,
            "arrivals": when,
            "output": f"{stem}-output.json",
            "options": arm.options,
            "seed": str(0 if seed is None else seed),
            "max_tokens": str(first.max_tokens),
            "prompt": quoted(first.prompt.prompt or ""),
            "prompt_ids": commands.ids(first.prompt.prompt_token_ids or ()),
        }


def arrivals(request: Request, arm: Arm) -> tuple[int, ...]:
    """The step before which each request arrives; copies come later where the arm says so. Empty: all at once."""
    first = request.workload.arrivals
    if arm.repeat_after_step is None:
        return first * arm.repeat
    first = first or (0,) * len(request.asked)
    return tuple(step + copy * arm.repeat_after_step for copy in range(arm.repeat) for step in first)


def merged(runs: Sequence[Generation]) -> Generation:
    if len(runs) == 1:
        return runs[0]
    launches: Counter[str] = Counter()
    for run in runs:
        launches.update(run.kernel_launches)
    answers = tuple(answer for run in runs for answer in run.requests)
    counted = {"kernel_launches": dict(launches)} if any(run.counts_launches for run in runs) else {}
    return runs[0].model_copy(update={"requests": answers, **counted})


def last_copy(name: str, found: Generation, asked: Sequence[Asked]) -> Generation:
    """The last answer to each prompt, under the prompt's name; earlier copies must say the same."""
    count = len(asked)
    for at, answer in enumerate(found.requests):
        if answer.token_ids != found.requests[at % count].token_ids:
            wanted = asked[at % count].name
            raise Failed(Outcome.FAIL, f"{name}: copy {at // count + 1} of {wanted!r} got other tokens than copy 1")
    for one, answer in zip(asked, found.requests, strict=False):
        if len(answer.token_ids) > one.max_tokens:
            text = f"{name}: {one.name!r} got {len(answer.token_ids)} tokens; {one.max_tokens} were asked for"
            raise Failed(Outcome.FAIL, text)
    named = zip(asked, found.requests[-count:], strict=True)
    answers = tuple(answer.model_copy(update={"name": one.name}) for one, answer in named)
    return found.model_copy(update={"requests": answers})


def require_hit(name: str, found: Generation) -> None:
    """Copies that come later are to find their prompts in the prefix cache; where none did, they prove nothing."""
    told = [answer.num_cached_tokens for answer in found.requests if answer.num_cached_tokens is not None]
    if told and not any(told):
        text = f"{name}: no later copy found its prompt in the prefix cache, so no hit was compared"
        raise Failed(Outcome.VOID, f"{text}; is the cache off, or repeat_after_step too small?")


def golden(path: Path, asked: Sequence[Asked]) -> Generation:
    """A recorded generation: the requests of this workload, cut to the length asked for."""
    try:
        recorded = generation.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failed(Outcome.VOID, f"can't read the golden file {path}: {error.strerror}") from None
    except (Unusable, UnicodeDecodeError) as error:
        raise Failed(Outcome.VOID, f"golden file {path}: {error}") from None
    known = {answer.name: answer for answer in recorded.requests}
    missing = [one.name for one in asked if one.name not in known]
    if missing:
        raise Failed(Outcome.VOID, f"golden file {path} has no answer to {', '.join(map(repr, missing))}")
    answers = tuple(cut(known[one.name], one.max_tokens) for one in asked)
    return recorded.model_copy(update={"requests": answers})


def cut(answer: Answer, count: int) -> Answer:
    return answer.model_copy(
        update={
            "token_ids": answer.token_ids[:count],
            "logprobs": answer.logprobs[:count],
            "runner_up": answer.runner_up[:count],
        }
    )


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(Outcome.VOID, f"{name} left no readable {path.name}: {error}") from None


def identity(found: Generation) -> Mapping[str, str]:
    return found.oracle.model_dump() if found.oracle else {}

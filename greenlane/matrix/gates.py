"""The `gates:` section of a matrix: workloads, arms, policies, counters and metrics, for any engine printing JSON."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=NAME)]
TEXT_REFUSED = (
    "text output can't be compared: different token ids can spell the same text, and a log line is not a token;"
    " let the command print token ids as JSON (docs/gates.md has the format)"
)


def _without_nulls(value: Any) -> Any:
    """An override removes an entry by setting it to null."""
    return {key: entry for key, entry in value.items() if entry is not None} if isinstance(value, dict) else value


def _percent(value: Any) -> Any:
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)):
        return float(match[1]) / 100
    return value


Ratio = Annotated[float, BeforeValidator(_percent), Field(gt=0, lt=1)]
Seconds = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompt(Section):
    """One request: exactly one of text, token ids or chat messages."""

    name: str | None = None
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    messages: tuple[dict[str, str], ...] | None = None
    max_tokens: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.prompt, self.prompt_token_ids, self.messages) if form is not None]
        if len(given) != 1:
            raise ValueError("a prompt has exactly one of `prompt`, `prompt_token_ids`, `messages`")
        return self


class Workload(Section):
    """What is asked of the engine."""

    prompts: str | tuple[Prompt, ...]  # a JSON file, relative to the project, or the prompts themselves
    take: int | None = Field(default=None, gt=0)  # only the first N prompts
    max_tokens: int = Field(default=64, gt=0)  # for prompts without their own
    cap_tokens: int | None = Field(default=None, gt=0)  # upper bound, also for prompts with their own
    seed: int | None = None
    arrivals: tuple[int, ...] = ()  # engine step before which each prompt arrives; empty: all at once


class Arm(Section):
    """One of the things compared: this lane's program with some options, its base, a golden file or another engine."""

    command: str | None = None  # instead of the gate's
    options: str = ""  # put where the command says {options}
    env: dict[str, str] = Field(default_factory=dict)
    base: bool = False  # run the base's build
    one_by_one: bool = False  # one process per prompt
    repeat: int = Field(default=1, gt=0)  # ask every prompt so often in one process; every copy must answer the same
    repeat_after_step: int | None = Field(
        default=None, gt=0
    )  # the copies arrive so many steps later: a prefix-cache hit
    golden: str | None = None  # a file in the JSON format, relative to the project
    oracle: Oracle | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [self.golden is not None, self.oracle is not None, self.base]
        if sum(sources) > 1:
            raise ValueError("an arm is one of `golden`, `oracle`, `base`, or this lane's own program")
        if self.golden and (self.command or self.options or self.env or self.repeat > 1 or self.one_by_one):
            raise ValueError("a golden file runs nothing: it takes no command, options, env or repeat")
        if self.oracle and self.command:
            raise ValueError("the command of an oracle stands in `oracle: {command: ...}`")
        return self


class Oracle(Section):
    """An independent implementation, run on the lane's own host."""

    command: str | None = None
    adapter: Literal["vllm", "huggingface"] | None = None
    model: str | None = None  # for an adapter: a folder or file
    mode: str  # part of the identity of what it says: "eager", "graph", "float32"
    version: str | None = None  # what is expected; another one is not the same oracle
    python: str = "python3"  # interpreter that has the adapter's package

    @model_validator(mode="after")
    def _runnable(self) -> Self:
        if (self.command is None) == (self.adapter is None):
            raise ValueError("an oracle has exactly one of `command`, `adapter`")
        if self.adapter and not self.model:
            raise ValueError(f"the {self.adapter} adapter needs `model`")
        return self


class Comparison(Section):
    """Two arms over one workload and what counts as the same."""

    left: Name
    right: Name
    workload: Name | None = None  # may be left out where there is one
    policy: Literal["strict", "near_tie"] = "strict"
    margin_nats: float = Field(default=0.5, gt=0, le=20)
    anchors: str | None = None  # near_tie: folder of this device's own ids; a missing one makes the gate void
    moved: tuple[str, ...] = ()  # launch counters that must be above zero on the left and zero on the right

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.left == self.right:
            raise ValueError("an arm compared with itself proves nothing")
        if self.anchors and self.policy != "near_tie":
            raise ValueError("anchors belong to the near_tie policy; strict needs none")
        return self


class Proof(Section):
    """How `greenlane review --prove` removes what a gate guards."""

    patch: str | None = None  # applied to a scratch work tree
    defines: dict[str, str] = Field(default_factory=dict)  # CMake defines that turn it off
    env: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _breaks_something(self) -> Self:
        if not (self.patch or self.defines or self.env):
            raise ValueError("a proof names a `patch`, `defines` or `env` that removes what the gate guards")
        return self


class ExactConfig(Section):
    generate: str  # shell command that prints the JSON; {prompts} {options} {seed} {arrivals} {output} ...
    score: str | None = None  # teacher forcing by a command: {pairs}, or {prompt_ids} and {token_ids}
    teacher: Oracle | None = None  # teacher forcing by another engine, instead of `score`
    format: Annotated[Literal["json"], BeforeValidator(lambda value: _refuse_text(value))] = "json"
    workloads: Annotated[dict[Name, Workload], BeforeValidator(_without_nulls)]
    arms: Annotated[dict[Name, Arm], BeforeValidator(_without_nulls)]
    compare: Annotated[dict[Name, Comparison], BeforeValidator(_without_nulls)]
    timeout_s: Seconds = 900.0  # per run of a command
    prove: Proof | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.compare or not self.workloads:
            raise ValueError("an exact gate without a comparison and a workload would be void in every run")
        for name, comparison in self.compare.items():
            self._check(name, comparison)
        _placeholders(self.generate, "generate", {"prompts", "prompt", "prompt_ids"})
        if self.score is not None:
            _placeholders(self.score, "score", {"prompt_ids", "pairs"})
        return self

    def _check(self, name: str, comparison: Comparison) -> None:
        for arm in (comparison.left, comparison.right):
            if arm not in self.arms:
                raise ValueError(f"compare.{name}: no arm {arm!r}; there are {', '.join(sorted(self.arms))}")
        if comparison.workload is None and len(self.workloads) > 1:
            raise ValueError(f"compare.{name}: say which workload: {', '.join(sorted(self.workloads))}")
        if comparison.workload is not None and comparison.workload not in self.workloads:
            raise ValueError(f"compare.{name}: no workload {comparison.workload!r}")
        if comparison.policy == "near_tie" and (self.score is None) == (self.teacher is None):
            raise ValueError(f"compare.{name}: near_tie needs `score`, a teacher-forcing command, or a `teacher`")
        if self.arms[comparison.left].golden:
            raise ValueError(f"compare.{name}: a golden file stands on the right; the left arm is the one judged")


class ReachArm(Section):
    options: str = ""
    env: dict[str, str] = Field(default_factory=dict)


class Witness(Section):
    """A second count of the launches, or the only one for an engine without counters."""

    kind: Literal["emulator", "rocprofv3", "nsys"]
    only: bool = False  # the engine has no counters of its own
    names: dict[str, str] = Field(default_factory=dict)  # counter -> regular expression on kernel names

    @model_validator(mode="after")
    def _patterns(self) -> Self:
        for counter, pattern in self.names.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"names.{counter}: {pattern!r} is no regular expression: {error}") from None
        return self


class ReachConfig(Section):
    command: str | None = None  # the exact gate's `generate` when left out
    workload: Workload | None = None  # the exact gate's first one when left out
    on: ReachArm = ReachArm()
    off: ReachArm | None = None
    must_reach: tuple[str, ...] = ()  # above zero when on, zero when off
    must_not_reach: tuple[str, ...] = ()  # zero when on
    watch: tuple[str, ...] = ()  # none reached when on: `inert`, which is green and shown
    witness: Witness | None = None
    timeout_s: Seconds = 900.0
    prove: Proof | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not (self.must_reach or self.must_not_reach or self.watch):
            raise ValueError("a reach gate names kernels in `must_reach`, `must_not_reach` or `watch`")
        if both := set(self.must_reach) & set(self.must_not_reach):
            raise ValueError(f"{', '.join(sorted(both))}: both in must_reach and in must_not_reach")
        if self.off is not None and self.off == self.on:
            raise ValueError("`on` and `off` are the same: nothing would be told apart")
        return self


class Metric(Section):
    path: str  # dotted path into the JSON: "decode.tokens_per_s", "results.0.p99_ms"
    direction: Literal["higher", "lower"]
    margin: Ratio = 0.01  # within it, two arms count as equal
    unit: str = ""
    of: Name | None = None  # which of the gate's `commands` prints it; not given: `command`


class BenchConfig(Section):
    command: str
    commands: Annotated[dict[Name, str], BeforeValidator(_without_nulls)] = Field(default_factory=dict)  # further ones
    metrics: Annotated[dict[Name, Metric], BeforeValidator(_without_nulls), Field(min_length=1)]
    options: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    arms: tuple[ReachArm, ReachArm] | None = None  # two ways to run one build (first against second); else head / base
    warmup: int = Field(default=1, ge=0, le=20)  # runs per arm that are thrown away
    min_pairs: int = Field(default=4, ge=3)
    max_pairs: int = Field(default=30, ge=3, le=1000)
    budget_s: Seconds = 900.0
    timeout_s: Seconds = 300.0  # per run
    error_rate: Ratio = 0.05  # of a false win or loss, and of a false wash
    required: bool = False  # `undecided` is then red: not measured
    figures: int = Field(default=3, ge=1, le=100)  # runs without a base

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_pairs < self.min_pairs:
            raise ValueError(f"max_pairs {self.max_pairs} is below min_pairs {self.min_pairs}")
        if self.arms is not None and self.arms[0] == self.arms[1]:
            raise ValueError("both arms are the same: nothing would be compared")
        self._every_command_is_used()
        return self

    def _every_command_is_used(self) -> None:
        wanted = {metric.of for metric in self.metrics.values()}
        if unknown := sorted(wanted - {None, *self.commands}, key=str):
            raise ValueError(
                f"metrics: no command {unknown[0]!r}; there are {', '.join(sorted(self.commands)) or 'none'}"
            )
        if unused := sorted(set(self.commands) - wanted):
            raise ValueError(f"commands.{unused[0]}: no metric is `of` it, so it would run for nothing")


class GatesConfig(Section):
    exact: ExactConfig | None = None
    reach: ReachConfig | None = None
    bench: BenchConfig | None = None

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.reach and not (self.reach.command or self.exact):
            raise ValueError("reach: give `command`, or an exact gate whose command it can use")
        if self.reach and not (self.reach.workload or self.exact):
            raise ValueError("reach: give `workload`, or an exact gate whose workload it can use")
        return self


def _refuse_text(value: Any) -> Any:
    if value in ("text", "llama-cli"):
        raise ValueError(TEXT_REFUSED)
    return value


def _placeholders(command: str, where: str, any_of: set[str]) -> None:
    if not any(f"{{{name}}}" in command for name in any_of):
        known = ", ".join(f"{{{name}}}" for name in sorted(any_of))
        raise ValueError(f"{where}: the command takes the prompts by one of {known}, and has none of them")


Arm.model_rebuild()
ExactConfig.model_rebuild()

"""The shape of a record. Text from outside enters here, so it is checked; unknown keys are refused."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from greenlane.matrix.model import Evidence, Stage

SCHEMA = 1


class Outcome(StrEnum):
    """How a stage, and a lane before the ledger is asked, ended."""

    PASS = "pass"
    FAIL = "fail"
    WIN = "win"
    LOSS = "loss"
    WASH = "wash"
    UNDECIDED = "undecided"
    VOID = "void"
    INERT = "inert"
    NOT_RUN = "not-run"
    BLOCKED = "blocked"

    @property
    def is_red(self) -> bool:
        return self in {Outcome.FAIL, Outcome.LOSS, Outcome.VOID}

    @property
    def is_green(self) -> bool:
        return self in {Outcome.PASS, Outcome.WIN, Outcome.WASH, Outcome.UNDECIDED, Outcome.INERT}


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Digests(Part):
    """Hex SHA-256 of everything that went in; `tree` covers the part of the tree that the lane reads."""

    matrix: str
    lane: str
    tree: str
    image: str | None = None
    model: str | None = None
    inputs: str | None = None  # gate inputs: prompts, golden ids, anchors
    greenlane: str | None = None


class Toolchain(Part):
    compiler: str | None = None
    version: str | None = None
    toolkit: str | None = None
    archs: tuple[str, ...] = ()  # read out of the built objects, never from what was asked for
    cmake: str | None = None


class Device(Part):
    name: str
    arch: str | None = None
    driver: str | None = None
    executor: str
    host: dict[str, str] = Field(default_factory=dict)  # CPU model, features, memory; never a host name


class FirstError(Part):
    message: str
    fingerprint: str
    file: str | None = None
    line: int | None = None
    rule: str | None = None
    target: str | None = None
    raw: str | None = None


class Related(Part):
    file: str
    line: int
    message: str


class Edit(Part):
    """Replace the lines `first..last` (one-based, inclusive; `last < first` inserts before `first`) by `text`."""

    file: str
    first: int
    last: int
    text: str


class Suggestion(Part):
    text: str
    edits: tuple[Edit, ...] = ()


class Finding(Part):
    rule: str
    severity: Literal["error", "warning", "note"]
    file: str
    line: int
    column: int
    lanes: tuple[str, ...]
    message: str
    related: tuple[Related, ...] = ()
    suggestion: Suggestion | None = None
    layer: Literal["source", "compiler"] = "source"


class StageResult(Part):
    stage: Stage
    outcome: Outcome
    reason: str | None = None  # why it was not run, is void or blocked; what failed
    started: str | None = None  # ISO 8601, UTC
    duration_s: float = 0.0
    first_error: FirstError | None = None
    log: str | None = None  # relative to the state folder
    # exact: token digests, first divergence, gaps and runner-up margins; reach: launch counts per arm;
    # bench: raw samples, interval, smallest visible effect; build: cache hits, kernel resources
    measurements: dict[str, Any] = Field(default_factory=dict)


class Record(Part):
    schema_: int = Field(SCHEMA, alias="schema")
    lane: str
    head: str  # commit; 40 hex digits
    base: str | None = None
    merge_tree: str | None = None
    dirty: bool
    digests: Digests
    toolchain: Toolchain = Toolchain()
    device: Device | None = None
    evidence: tuple[Evidence, ...] = ()
    stages: tuple[StageResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    outcome: Outcome
    reused_from: str | None = None  # id of the record that this one repeats
    trust: Literal["fork", "runner", "local"] = "local"
    require: tuple[Evidence, ...] = ()
    row: str | None = None
    started: str = ""
    duration_s: float = 0.0
    family: dict[str, str] | None = None  # sibling arch and generic target behind `ran-on-family`
    proven: dict[str, Any] | None = None  # gates proven by breaking what they guard: when, which commit

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, indent=1)

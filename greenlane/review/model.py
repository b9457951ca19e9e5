"""What a review says: frozen values that every report is rendered from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from greenlane.record.model import Outcome


class Verdict(StrEnum):
    """A lane's final word after the ledger has been asked."""

    GREEN = "green"
    NEW_RED = "new-red"
    OVERLAP_RED = "overlap-red"
    RED_ON_BASE = "red-on-base"
    KNOWN_RED = "known-red"
    FLAKY = "flaky"
    UNCLASSIFIED = "unclassified"
    VOID = "void"
    INFRA = "infra"
    NOT_RUN = "not-run"
    BLOCKED = "blocked"

    @property
    def blocks(self) -> bool:
        return self not in {Verdict.GREEN, Verdict.RED_ON_BASE, Verdict.KNOWN_RED}


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage as a reader sees it."""

    stage: str
    outcome: Outcome
    reason: str | None = None
    duration_s: float = 0.0
    message: str | None = None  # first error
    file: str | None = None
    line: int | None = None
    log: str | None = None
    measurements: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LaneReview:
    """One lane's verdict and what it rests on."""

    id: str
    verdict: Verdict
    reason: str  # one sentence: why this verdict
    evidence: tuple[str, ...] = ()  # what is proven at this very commit
    missing: tuple[str, ...] = ()  # of what the lane requires
    stages: tuple[StageView, ...] = ()
    fingerprint: str | None = None
    required: bool = False  # the required gate needs this lane
    row: str | None = None
    backend: str | None = None
    arch: str | None = None
    variant: str | None = None
    record: str | None = None  # id of the record that speaks for this commit
    commit: str | None = None  # the commit that the shown record certifies
    stale: bool = False  # the shown record is of another commit, tree, image or matrix
    last_run: str | None = None  # commit that this lane last ran on its target
    trust: str | None = None
    image: str | None = None
    owner: str | None = None  # of a known red
    age_days: int | None = None  # of a red that is older than this change
    findings: tuple[dict[str, Any], ...] = ()  # of greenlane check, in this lane
    duration_s: float = 0.0
    bench: dict[str, Any] | None = None
    device: str | None = None
    device_arch: str | None = None
    reused_from: str | None = None
    new_findings: tuple[str, ...] | None = None  # identities of those that the base lacks; None where nobody knows

    @property
    def blocks(self) -> bool:
        return self.verdict.blocks


class ClaimState(StrEnum):
    PROVEN = "proven"
    STALE = "stale"
    OTHER_DEVICE = "proven-on-another-device"
    CONTRADICTED = "contradicted"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the pull request, bound to a record or shown as unproven."""

    text: str
    kind: str  # "built", "exact", "mirror-exact", "wash", "win", "loss", "reached", "tested", "closes", "row"
    state: ClaimState
    reason: str
    lanes: tuple[str, ...] = ()
    commit: str | None = None  # of the record it was matched to
    line: int = 0  # of the pull request's body


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that does not merge."""

    file: str
    hunks: tuple[tuple[int, int], ...] = ()  # line ranges in the head's file, from one
    own: bool = False  # this change's own lines are among them
    gone: bool = False  # the head has deleted, or renamed, the file


@dataclass(frozen=True, slots=True)
class MergeProbe:
    """What git says about merging head into base now."""

    state: str  # "clean", "conflict", "unknown"
    tree: str | None = None
    conflicts: tuple[Conflict, ...] = ()
    merge_base: str | None = None
    behind: int = 0  # commits on base that head lacks
    reason: str | None = None
    others: dict[str, tuple[Conflict, ...]] = field(default_factory=dict)  # other open changes that conflict
    unknown_others: tuple[str, ...] = ()  # refs that are not here, or share no commit


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """An edit that a change makes to its own gates; it takes effect after the merge."""

    what: str
    before: str
    after: str
    loosens: bool = False


@dataclass(frozen=True, slots=True)
class FoundFinding:
    """A finding of the checks that keeps lanes red, told once for all of them."""

    rule: str
    severity: str
    file: str
    line: int
    message: str
    lanes: tuple[str, ...]  # whose record of this head holds it
    new_in: tuple[str, ...] = ()  # of these, where the base is known not to have it
    whose_is_unknown: bool = False  # in some lane nobody can say whether the base has it
    suggestion: str | None = None
    related: tuple[tuple[str, int, str], ...] = ()  # file, line, what is there


@dataclass(frozen=True, slots=True)
class TextProblem:
    """What the pull request's own text lacks."""

    line: int
    message: str
    lanes: tuple[str, ...] = ()
    blocks: bool = True


@dataclass(frozen=True, slots=True)
class Systemic:
    """One fingerprint across many lanes, reported once."""

    fingerprint: str
    message: str
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that a reviewer is told."""

    head: str
    base: str
    merge: MergeProbe
    lanes: tuple[LaneReview, ...]
    claims: tuple[Claim, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    systemic: tuple[Systemic, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be found out, and body fields that are missing
    base_commit: str = ""
    head_subject: str = ""
    findings: tuple[FoundFinding, ...] = ()
    text_problems: tuple[TextProblem, ...] = ()
    broken: str | None = None  # why the head's matrix can't be read

    @property
    def exit_code(self) -> int:
        """0 every required lane is green; 1 something blocks; 2 the head's matrix is broken; 3 nobody can say whether
        it merges; 4 only evidence is missing."""
        if self.broken:
            return 2
        verdicts = {lane.verdict for lane in self.lanes if lane.required and lane.blocks}
        if self.merge.state == "conflict" or verdicts - {Verdict.NOT_RUN} or self._lacks_text:
            return 1
        if self.merge.state != "clean":
            return 3
        return 4 if verdicts else 0

    @property
    def _lacks_text(self) -> bool:
        return any(problem.blocks for problem in self.text_problems)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

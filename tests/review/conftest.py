"""A scratch repository with a small matrix, and records of its commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from greenlane.ledger import Ledger
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.digests import gates_digest
from greenlane.record.fingerprint import fingerprint
from greenlane.record.git import git, git_text
from greenlane.record.model import Digests, FirstError, Outcome, Record, StageResult
from greenlane.review.model import LaneReview, Review
from greenlane.review.review import Asked, review

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
PROVEN = {Stage.CHECK: Evidence.CHECKED, Stage.BUILD: Evidence.BUILT, Stage.TEST: Evidence.TESTED}

MATRIX = """\
stages: {configure: ["cmake -S {source} -B {build}"], build: ["cmake --build {build}"], test: [ctest]}
defaults: {require: [checked, built]}
backends:
  cpu: {row: BACKEND-CPU, compiler: gcc}
  rocm: {row: BACKEND-ROCM, compiler: hipcc, device: amd, vendors: [hip]}
lanes:
  products:
    - {backend: cpu}
    - {backend: rocm, arch: [gfx1100, gfx1151]}
"""


@dataclass
class Story:
    """Commits and records in the order in which they happen."""

    repository: Path
    ledger: Ledger
    clock: datetime = NOW - timedelta(days=1)
    heads: dict[str, str] = field(default_factory=dict)

    def commit(self, name: str, files: dict[str, str] | None = None, when: datetime | None = None) -> str:
        self.clock += timedelta(minutes=10)
        date = (when or self.clock).isoformat()
        for path, text in (files or {}).items():
            target = self.repository / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        git(self.repository, "add", "-A")
        identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
                    (("NAME", "t"), ("EMAIL", "t@localhost"), ("DATE", date))}  # fmt: skip
        git(self.repository, "commit", "-q", "--allow-empty", "-m", name, env=identity)
        self.heads[name] = git_text(self.repository, "rev-parse", "HEAD")
        return self.heads[name]

    def branch(self, name: str, start: str | None = None) -> None:
        """Go to a branch; with `start`, put it there first."""
        git(self.repository, "checkout", "-q", *(["-B", name, start] if start else [name]))

    def record(
        self,
        lane_id: str,
        commit: str,
        error: str | None = None,
        *,
        stage: Stage = Stage.BUILD,
        file: str | None = "src/attn.cpp",
        line: int | None = 3,
        evidence: tuple[Evidence, ...] | None = None,
        stages: tuple[StageResult, ...] | None = None,
        **changes: object,
    ) -> str:
        """A record of a lane at a commit; `error` makes the stage red."""
        self.clock += timedelta(minutes=1)
        content = git(self.repository, "cat-file", "-p", f"{commit}:matrix.yaml").stdout
        lane = compile_matrix(content, "matrix.yaml").matrix.lane(lane_id)
        assert lane is not None
        results = stages or _stages(error, stage, file, line)
        if evidence is not None and stages is None:
            results = _showing(results, evidence)
        passed = tuple(
            PROVEN[result.stage] for result in results if result.outcome is Outcome.PASS and result.stage in PROVEN
        )
        red = any(result.outcome.is_red for result in results)
        fields: dict[str, object] = {
            "lane": lane_id,
            "head": commit,
            "dirty": False,
            "digests": Digests(matrix="m", lane=lane.digest, tree=commit, inputs=gates_digest(lane)),
            "evidence": passed if evidence is None else evidence,
            "stages": results,
            "outcome": Outcome.FAIL if red else Outcome.PASS,
            "trust": "runner",
            "started": self.clock.isoformat(),
        }
        return self.ledger.put(Record(**(fields | changes)))  # type: ignore[arg-type]

    def review(self, base: str = "main", head: str = "change", body: str | None = "", **changes: object) -> Review:
        asked = Asked(self.repository, "matrix.yaml", base, head, body, now=NOW)
        return review(self.ledger, Asked(**({name: getattr(asked, name) for name in Asked.__slots__} | changes)))  # type: ignore[arg-type]

    def lane(self, lane_id: str, **changes: object) -> LaneReview:
        return next(lane for lane in self.review(**changes).lanes if lane.id == lane_id)  # type: ignore[arg-type]


SHOWS = {**{flag: stage for stage, flag in PROVEN.items()}, Evidence.REACHED: Stage.REACH, Evidence.EXACT: Stage.EXACT,
         Evidence.BENCHED: Stage.BENCH}  # fmt: skip


def _showing(results: tuple[StageResult, ...], evidence: tuple[Evidence, ...]) -> tuple[StageResult, ...]:
    """The stages, and a green one for each further flag: evidence rests on a stage."""
    there = {result.stage for result in results}
    wanted = [SHOWS[flag] for flag in evidence if flag in SHOWS and SHOWS[flag] not in there]
    return (*results, *(StageResult(stage=stage, outcome=Outcome.PASS) for stage in wanted))


def _stages(error: str | None, stage: Stage, file: str | None, line: int | None) -> tuple[StageResult, ...]:
    results = []
    for step in (Stage.CHECK, Stage.BUILD, Stage.TEST):
        if error is not None and step is stage:
            first = FirstError(message=error, fingerprint=fingerprint(error), file=file, line=line)
            results.append(StageResult(stage=step, outcome=Outcome.FAIL, first_error=first))
            break
        results.append(StageResult(stage=step, outcome=Outcome.PASS))
    return tuple(results)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """main at `base`; branch `change` one commit ahead, which touches src/attn.cpp."""
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    told = Story(repository, Ledger(tmp_path / "ledger"))
    lines = "".join(f"line {number}\n" for number in range(200))
    told.commit("older", {"matrix.yaml": MATRIX, "src/attn.cpp": lines, "src/norm.cpp": lines})
    told.commit("base", {"src/norm.cpp": lines + "more\n"})
    told.branch("change", "main")
    told.commit("change", {"src/attn.cpp": lines.replace("line 4\n", "line four\n")})
    return told


@pytest.fixture
def edited() -> Callable[[str, str], str]:
    def edit(before: str, after: str) -> str:
        assert before in MATRIX
        return MATRIX.replace(before, after)

    return edit

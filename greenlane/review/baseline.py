"""What the base's own records say about a red: the only thing that can clear a change of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from greenlane.ledger import Ledger
from greenlane.ledger.index import StageRow
from greenlane.record.git import git_text
from greenlane.record.model import Outcome

WINDOW = timedelta(hours=72)
ANCESTORS = 200  # base commits that are asked, nearest first


@dataclass(frozen=True, slots=True)
class Sighting:
    """One base commit's answer for one stage of one lane."""

    commit: str
    outcome: Outcome
    fingerprint: str | None
    committed: datetime


@dataclass(frozen=True)
class Baseline:
    """Sightings per (lane, stage), nearest base commit first."""

    merge_base: str
    sightings: dict[tuple[str, str], list[Sighting]] = field(default_factory=dict)

    def red_on_base(self, lane: str, stage: str, fingerprint: str, now: datetime) -> str | None:
        """Why this red is older than the change, or None. Needs the very fingerprint, seen on the merge base or on two
        distinct base commits not older than 72 hours."""
        if not fingerprint:
            return None
        same = [seen for seen in self._of(lane, stage) if seen.fingerprint == fingerprint and seen.outcome.is_red]
        if any(seen.commit == self.merge_base for seen in same):
            return f"the merge base {self.merge_base[:10]} fails alike"
        recent = {seen.commit: seen for seen in same if now - seen.committed <= WINDOW}
        if len(recent) >= 2:
            names = ", ".join(commit[:10] for commit in list(recent)[:2])
            return f"two base commits of the last 72 hours fail alike: {names}"
        return None

    def green_at(self, lane: str, stage: str) -> str | None:
        """The nearest base commit whose newest answer for this stage was green, or None."""
        for seen in self._of(lane, stage):
            if seen.outcome.is_green:
                return seen.commit
            if seen.outcome.is_red:
                return None
        return None

    def _of(self, lane: str, stage: str) -> list[Sighting]:
        return self.sightings.get((lane, stage), [])


def read(ledger: Ledger, repository: Path, merge_base: str) -> Baseline:
    """Ask the ledger about the merge base and the commits before it. Records of forks are never a baseline."""
    commits = _ancestors(repository, merge_base)
    trusted = {row.id for row in ledger.rows() if row.trust != "fork"}
    stages = (stage for stage in ledger.index.stages(commits) if stage.record in trusted)
    return Baseline(merge_base, _grouped(stages, commits))


def _grouped(stages: Iterable[StageRow], commits: dict[str, datetime]) -> dict[tuple[str, str], list[Sighting]]:
    order = {commit: position for position, commit in enumerate(commits)}
    found: dict[tuple[str, str], list[Sighting]] = defaultdict(list)
    for row in stages:  # newest record first, so that a commit's newest answer stays in front
        sighting = Sighting(row.head, Outcome(row.outcome), row.fingerprint, commits[row.head])
        found[row.lane, row.stage].append(sighting)
    for sightings in found.values():
        sightings.sort(key=lambda seen: order[seen.commit])
    return dict(found)


def _ancestors(repository: Path, commit: str) -> dict[str, datetime]:
    """Commit -> commit time, the given one first. Commit times come from strangers' clocks and are clamped to now."""
    lines = git_text(repository, "log", f"--max-count={ANCESTORS}", "--format=%H %ct", commit).splitlines()
    now = datetime.now(UTC)
    times = (line.split() for line in lines)
    return {name: min(now, _time(int(seconds))) for name, seconds in times}


def _time(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)

"""What the base's own records say about a red: the only thing that can clear a change of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from greenlane.ledger import InvalidRecord, Ledger
from greenlane.ledger.index import StageRow
from greenlane.record.git import git_text
from greenlane.record.model import Outcome, Record, StageResult
from greenlane.review import faults
from greenlane.review.faults import Fault

WINDOW = timedelta(hours=72)
ANCESTORS = 200  # base commits that are asked, nearest first


@dataclass(frozen=True, slots=True)
class Sighting:
    """One record's answer for one stage of one lane, at a base commit."""

    record: str
    commit: str
    outcome: Outcome
    committed: datetime


@dataclass(frozen=True)
class Baseline:
    """Sightings per (lane, stage), nearest base commit first, and within a commit the newest record first."""

    merge_base: str
    sightings: dict[tuple[str, str], list[Sighting]] = field(default_factory=dict)
    load: Callable[[str], Record | None] = lambda _: None

    def red_on_base(self, lane: str, stage: str, wanted: Fault, now: datetime) -> str | None:
        """Why this red is older than the change, or None. Needs the very fault, seen on the merge base or on two
        distinct base commits not older than 72 hours; commits before one that was green don't count."""
        seen: dict[str, datetime] = {}
        for sighting in self._since_green(lane, stage):
            if sighting.commit in seen or not self._shows(sighting, lane, stage, wanted):
                continue
            if sighting.commit == self.merge_base:
                return f"the merge base {sighting.commit[:10]} fails alike"
            if now - sighting.committed <= WINDOW:
                seen[sighting.commit] = sighting.committed
            if len(seen) == 2:
                return f"two base commits of the last 72 hours fail alike: {', '.join(name[:10] for name in seen)}"
        return None

    def green_at(self, lane: str, stage: str) -> str | None:
        """The nearest base commit whose newest answer for this stage was green, or None."""
        first = next((seen for seen in self._of(lane, stage) if seen.outcome.is_red or seen.outcome.is_green), None)
        return first.commit if first is not None and first.outcome.is_green else None

    def new_parts(self, lane: str, stage: str, wanted: Fault) -> tuple[str, tuple[str, ...]] | None:
        """(base commit, the parts of the fault that it lacks), of the nearest base commit that ended this stage."""
        for sighting in self._of(lane, stage):
            fault = self._fault(sighting, lane, stage)
            if fault is not None:
                return sighting.commit, tuple(sorted(wanted.parts - fault.parts))
        return None

    def _since_green(self, lane: str, stage: str) -> Iterator[Sighting]:
        """Sightings up to the nearest base commit that was green: what failed before that was mended."""
        green: str | None = None
        for sighting in self._of(lane, stage):
            if green is not None and sighting.commit != green:
                return
            if sighting.outcome.is_green:
                green = sighting.commit
            else:
                yield sighting

    def _shows(self, sighting: Sighting, lane: str, stage: str, wanted: Fault) -> bool:
        fault = self._fault(sighting, lane, stage) if sighting.outcome.is_red else None
        return fault is not None and wanted.is_within(fault)

    def _fault(self, sighting: Sighting, lane: str, stage: str) -> Fault | None:
        """What the record's file, not the index, says was wrong. None where file and index disagree."""
        record = self.load(sighting.record)
        if record is None or record.dirty or record.trust == "fork":
            return None
        if (record.lane, record.head) != (lane, sighting.commit):
            return None
        result: StageResult | None = next((found for found in record.stages if found.stage == stage), None)
        if result is None or result.outcome is not sighting.outcome:
            return None
        return faults.of(record, result)

    def _of(self, lane: str, stage: str) -> list[Sighting]:
        return self.sightings.get((lane, stage), [])


def read(ledger: Ledger, repository: Path, merge_base: str, lanes: Iterable[str]) -> Baseline:
    """Ask the ledger about these lanes at the merge base and the commits before it. Forks' records never count."""
    commits = _ancestors(repository, merge_base)
    return Baseline(merge_base, _grouped(ledger.index.stages(commits, lanes), commits), loader(ledger))


def loader(ledger: Ledger) -> Callable[[str], Record | None]:
    """Records by id, each read once; None for one that is damaged or gone."""
    known: dict[str, Record | None] = {}

    def load(record_id: str) -> Record | None:
        if record_id not in known:
            try:
                known[record_id] = ledger.get(record_id)
            except InvalidRecord:
                known[record_id] = None
        return known[record_id]

    return load


def _grouped(stages: Iterable[StageRow], commits: dict[str, datetime]) -> dict[tuple[str, str], list[Sighting]]:
    order = {commit: position for position, commit in enumerate(commits)}
    outcomes = {str(outcome): outcome for outcome in Outcome}
    found: dict[tuple[str, str], list[Sighting]] = defaultdict(list)
    for row in stages:  # newest record first, so that a commit's newest answer stays in front
        if row.outcome in outcomes:
            found[row.lane, row.stage].append(Sighting(row.record, row.head, outcomes[row.outcome], commits[row.head]))
    for sightings in found.values():
        sightings.sort(key=lambda seen: order[seen.commit])
    return dict(found)


def commits(repository: Path, tip: str) -> frozenset[str]:
    """The newest commits of the base."""
    return frozenset(_ancestors(repository, tip))


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

"""Claims: sentences of a pull request bound to the records of the lanes that they speak of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import Outcome, Record, StageResult
from greenlane.review.figures import figure, interval
from greenlane.review.model import Claim, ClaimState
from greenlane.review.sentences import ARCH, CLOSES, ROW, Kind, kind_of, lines, sentences
from greenlane.review.standing import RUNS, Standing, families

MAX_CLAIMS = 60
SHOWN = 300  # characters of a sentence
ROUNDED = 0.005  # by how much a written figure may be off: half a point
JUDGED = (Outcome.WIN, Outcome.LOSS, Outcome.WASH)

# From the best answer of a lane to the worst: the worst of a claim's lanes is the claim's state.
ORDER = (ClaimState.PROVEN, ClaimState.STALE, ClaimState.OTHER_DEVICE, ClaimState.UNPROVEN, ClaimState.CONTRADICTED)
Answer = tuple[ClaimState, str, str | None]  # state, why, commit of the record


def read(
    body: str, standings: Mapping[str, Standing], load: Callable[[str], Record | None] = lambda _: None
) -> tuple[Claim, ...]:
    """Every claim of a pull request's body, in order, matched to the records of its lanes. `load` gives older ones."""
    court = Witnesses(standings, families(standings), load)
    found = list(islice(_found(body, court), MAX_CLAIMS))
    unproven = [claim for claim in found if claim.state is not ClaimState.PROVEN]
    closing = [_closing(line, number, unproven) for number, line in lines(body) if CLOSES.search(line)][:5]
    return tuple(found + (closing if unproven else []))


@dataclass(frozen=True)
class Witnesses:
    """What a claim is held against."""

    standings: Mapping[str, Standing]
    siblings: Mapping[str, list[Standing]]
    load: Callable[[str], Record | None]

    @cached_property
    def backends(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found.lane.backend for found in self.standings.values()))

    @cached_property
    def names(self) -> frozenset[str]:
        """Architectures that some lane is for."""
        return frozenset(
            name.lower() for found in self.standings.values() for name in (found.lane.arch, *found.lane.archs) if name
        )


def _found(body: str, court: Witnesses) -> Iterator[Claim]:
    for number, line in lines(body):
        yield from _row_claims(line, number, court.standings)
        in_line = _scope(line, court.standings) or list(court.standings.values())
        for sentence in sentences(line):
            kind = kind_of(sentence)
            if kind is None:
                continue
            stranger = _stranger(sentence, court) or (
                None if _scope(sentence, court.standings) else _stranger(line, court)
            )
            if stranger is not None:
                told = f"the matrix has no lane for {stranger}"
                yield Claim(sentence[:SHOWN], kind.name, ClaimState.UNPROVEN, told, line=number)
            else:
                yield _bound(kind, sentence, number, _scope(sentence, court.standings) or in_line, court)


def _stranger(text: str, court: Witnesses) -> str | None:
    """A device or toolkit that the text names and no lane is for."""
    words = text.lower()
    unknown = next((match for match in ARCH.findall(words) if match not in court.names), None)
    if unknown is not None:
        return str(unknown)
    for backend in court.backends:
        version = _version(backend, words)
        lanes = (found.lane for found in court.standings.values() if found.lane.backend == backend)
        if version and not any(_backend(lane, words) for lane in lanes):
            return f"{backend} {version[1]}" + (f".{version[2]}" if version[2] else "")
    return None


def _scope(text: str, standings: Mapping[str, Standing]) -> list[Standing]:
    """The lanes that a sentence names: by id or arch, and by backend where it names none of that backend's lanes."""
    words = text.lower()
    chosen = {name for name, found in standings.items() if _id(found.lane, words) or _arch(found.lane, words)}
    narrowed = {standings[name].lane.backend for name in chosen}
    for name, found in standings.items():
        if found.lane.backend not in narrowed and _backend(found.lane, words):
            chosen.add(name)
    return [found for name, found in standings.items() if name in chosen]


def _word(name: str | None, text: str) -> bool:
    word = str(name or "").lower()
    # The cheap question comes first: a thousand lanes are a thousand patterns to compile.
    return word != "" and word in text and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def _id(lane: Lane, text: str) -> bool:
    return (lane.arch is not None or lane.variant is not None) and _word(lane.id, text)


def _arch(lane: Lane, text: str) -> bool:
    return _word(lane.arch, text) or any(_word(arch, text) for arch in lane.archs)


def _backend(lane: Lane, text: str) -> bool:
    if not _word(lane.backend, text) and not (lane.backend == "rocm" and _word("hip", text)):
        return False
    version = _version(lane.backend, text)
    if version is None or lane.toolkit is None:
        return True
    wanted = version[1] if version[2] in {None, "x"} else f"{version[1]}.{version[2]}"
    return lane.toolkit == wanted or lane.toolkit.startswith(f"{wanted}.")


def _version(backend: str, text: str) -> re.Match[str] | None:
    return None if backend not in text else re.search(rf"\b{re.escape(backend)}\s+v?(\d+)(?:\.(\d+|x))?\b", text)


def _bound(kind: Kind, sentence: str, number: int, lanes: list[Standing], court: Witnesses) -> Claim:
    answers = [(standing, *_answer(kind, sentence, standing, court)) for standing in lanes]
    worst = max(answers, key=lambda answer: ORDER.index(answer[1]))
    state = worst[1]
    named = tuple(standing.lane.id for standing, found, _, _ in answers if found is state)
    alike = f"; {len(named) - 1} more lane{'s' if len(named) > 2 else ''} likewise" if len(named) > 1 else ""
    older = next((found for found in answers if found[1] is ClaimState.STALE), None)
    partly = f"; {older[2]}" if older is not None and state is not ClaimState.STALE else ""
    reason = worst[2] + alike + partly
    return Claim(sentence[:SHOWN], kind.name, state, reason, lanes=named, commit=worst[3], line=number)


def _answer(kind: Kind, sentence: str, standing: Standing, court: Witnesses) -> Answer:
    lane, record = standing.lane, standing.current
    if record is not None:
        against = _contradiction(kind, sentence, record)
        if against is not None:
            return ClaimState.CONTRADICTED, f"{lane.id}: {against}", record.head
        if _proves(kind, record, standing.evidence):
            return _proven(kind, standing, record)
    stale = _stale(kind, standing, court)
    if stale is not None:
        return stale
    for other in court.siblings.get(lane.id, []):
        if other.current is not None and other.current.trust != "fork" and _proves(kind, other.current, other.evidence):
            return ClaimState.OTHER_DEVICE, _elsewhere(lane, other.lane.arch), other.current.head
    return ClaimState.UNPROVEN, f"{lane.id}: {_why_nothing(kind, record)}", None


def _why_nothing(kind: Kind, record: Record | None) -> str:
    red = next((stage.stage for stage in record.stages if stage.outcome.is_red), None) if record else None
    if red is not None and list(Stage).index(red) < list(Stage).index(kind.stage):
        return f"{red} is red at this commit, so {kind.stage} did not run"
    return "no record of this commit shows it"


def _proven(kind: Kind, standing: Standing, record: Record) -> Answer:
    """What a record that bears the claim out is worth: by whose word, and on which device."""
    lane = standing.lane
    if record.trust == "fork":
        return ClaimState.UNPROVEN, f"{lane.id}: only the fork's own run says so", record.head
    if kind.stage in RUNS and str(Evidence.RAN_ON_FAMILY) in standing.evidence:
        return ClaimState.OTHER_DEVICE, _elsewhere(lane, record.device.arch if record.device else None), record.head
    return ClaimState.PROVEN, f"{lane.id}: {_how(kind, record)}", record.head


def _elsewhere(lane: Lane, arch: str | None) -> str:
    return f"{lane.id}: proven on {arch or 'a sibling'}, which says nothing of how it behaves on {lane.arch or lane.id}"


def _stale(kind: Kind, standing: Standing, court: Witnesses) -> Answer | None:
    """An older proof of this change. What the base could do before it says nothing of the change."""
    for stale in standing.stale:
        row = stale.row
        if stale.of_base or str(kind.evidence) not in row.evidence or row.trust == "fork":
            continue
        if kind.outcome is not None or kind.name == "mirror-exact":
            record = court.load(row.id)
            if record is None or not _proves(kind, record, row.evidence):
                continue
        told = (
            f"proven for {row.head[:10]}, not for this commit"
            if stale.of_other
            else f"shown, but the record {stale.why}"
        )
        return ClaimState.STALE, f"{standing.lane.id}: {told}", row.head
    return None


def _proves(kind: Kind, record: Record, evidence: tuple[str, ...]) -> bool:
    if str(kind.evidence) not in evidence:
        return False
    if kind.outcome is not None:
        return any(stage.stage is Stage.BENCH and stage.outcome is kind.outcome for stage in record.stages)
    return kind.name != "mirror-exact" or _compared_mirror(record)


def _compared_mirror(record: Record) -> bool:
    """Whether the exact stage compared two arms that differ by the mirror."""
    exact = next((stage for stage in record.stages if stage.stage is Stage.EXACT), None)
    comparisons = exact.measurements.get("comparisons") if exact else None
    if not isinstance(comparisons, list):
        return False
    return any("mirror" in str(comparison.get("name")) for comparison in comparisons if isinstance(comparison, dict))


def _contradiction(kind: Kind, sentence: str, record: Record) -> str | None:
    """What in the record says the opposite of the claim."""
    stage = next((stage for stage in record.stages if stage.stage is kind.stage), None)
    if stage is None:
        return None
    if stage.outcome is Outcome.FAIL:
        return f"{kind.stage} is red at this commit"
    if kind.outcome is None or stage.outcome not in JUDGED:
        return None
    if stage.outcome is not kind.outcome:
        return f"{kind.stage} ended as a {stage.outcome} at this commit"
    return _overstated(sentence, stage)


def _overstated(sentence: str, stage: StageResult) -> str | None:
    """A figure above every measured interval that it may speak of; None where there is no figure, or it holds."""
    claimed = figure(sentence)
    metrics = stage.measurements.get("metrics")
    if claimed is None or not isinstance(metrics, dict):
        return None
    named = {name: found for name, found in metrics.items() if _word(name, sentence.lower())} or metrics
    intervals = {name: ends for name, found in named.items() if (ends := interval(found)) is not None}
    if not intervals or any(claimed <= high + ROUNDED for _, high in intervals.values()):
        return None
    measured = "; ".join(f"{name} {100 * low:+.1f} to {100 * high:+.1f} %" for name, (low, high) in intervals.items())
    return f"measured at this commit: {measured}"


def _how(kind: Kind, record: Record) -> str:
    if Evidence.RAN_ON_TARGET not in record.evidence and Evidence.EMULATED in record.evidence:
        return f"{kind.evidence} in emulation, not on a card"
    return f"{kind.evidence} at this commit"


def _row_claims(line: str, number: int, standings: Mapping[str, Standing]) -> Iterator[Claim]:
    match = ROW.match(line)
    if match is None:
        return
    rows = sorted({standing.lane.row for standing in standings.values() if standing.lane.row})
    if match[1] in rows:
        lanes = tuple(name for name, standing in standings.items() if standing.lane.row == match[1])
        yield Claim(
            line.strip()[:SHOWN],
            "row",
            ClaimState.PROVEN,
            f"row {match[1]} owns {len(lanes)} lanes",
            lanes,
            line=number,
        )
    else:
        told = f"{match[1]} is no row of the matrix; its rows are {', '.join(rows) or 'none'}"
        yield Claim(line.strip()[:SHOWN], "row", ClaimState.CONTRADICTED, told, line=number)


def _closing(line: str, number: int, unproven: list[Claim]) -> Claim:
    count = len(unproven)
    beside = "a claim beside it is not proven" if count == 1 else f"{count} claims beside it are not proven"
    return Claim(line.strip()[:SHOWN], "closes", ClaimState.UNPROVEN, f"it closes an issue, and {beside}", line=number)

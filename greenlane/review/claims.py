"""Claims: sentences of a pull request bound to the records of the lanes that they speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import Outcome, Record
from greenlane.review.model import Claim, ClaimState
from greenlane.review.sentences import CLOSES, ROW, Kind, kind_of, lines, sentences
from greenlane.review.standing import Standing, families

MAX_CLAIMS = 60
SHOWN = 300  # characters of a sentence

# From the best answer of a lane to the worst: the worst of a claim's lanes is the claim's state.
ORDER = (ClaimState.PROVEN, ClaimState.STALE, ClaimState.OTHER_DEVICE, ClaimState.UNPROVEN, ClaimState.CONTRADICTED)
Answer = tuple[ClaimState, str, str | None]  # state, why, commit of the record


def read(body: str, standings: Mapping[str, Standing]) -> tuple[Claim, ...]:
    """Every claim of a pull request's body, in order, matched to the records of its lanes."""
    siblings = families(standings)
    found = list(islice(_found(body, standings, siblings), MAX_CLAIMS))
    proven = all(claim.state is ClaimState.PROVEN for claim in found)
    closing = [_closing(line, number, proven) for number, line in lines(body) if CLOSES.search(line)][:5]
    return tuple(found + closing)


def _found(body: str, standings: Mapping[str, Standing], siblings: Mapping[str, list[Standing]]) -> Iterator[Claim]:
    for number, line in lines(body):
        yield from _row_claims(line, number, standings)
        in_line = _scope(line, standings) or list(standings.values())
        for sentence in sentences(line):
            kind = kind_of(sentence)
            if kind is not None:
                yield _bound(kind, sentence, number, _scope(sentence, standings) or in_line, siblings)


def _scope(text: str, standings: Mapping[str, Standing]) -> list[Standing]:
    """The lanes that a sentence names: by id, by arch, else by backend (and toolkit, where it gives a version)."""
    words = text.lower()
    for names in (_id, _arch, _backend):
        chosen = [standing for standing in standings.values() if names(standing.lane, words)]
        if chosen:
            return chosen
    return []


def _word(name: str | None, text: str) -> bool:
    return bool(name) and re.search(rf"(?<![\w-]){re.escape(str(name).lower())}(?![\w-])", text) is not None


def _id(lane: Lane, text: str) -> bool:
    return (lane.arch is not None or lane.variant is not None) and _word(lane.id, text)


def _arch(lane: Lane, text: str) -> bool:
    return _word(lane.arch, text) or any(_word(arch, text) for arch in lane.archs)


def _backend(lane: Lane, text: str) -> bool:
    if not _word(lane.backend, text) and not (lane.backend == "rocm" and _word("hip", text)):
        return False
    version = re.search(rf"\b{re.escape(lane.backend)}\s+v?(\d+)(?:\.(\d+|x))?", text)
    if version is None or lane.toolkit is None:
        return True
    wanted = version[1] if version[2] in {None, "x"} else f"{version[1]}.{version[2]}"
    return lane.toolkit == wanted or lane.toolkit.startswith(f"{wanted}.")


def _bound(
    kind: Kind, sentence: str, number: int, lanes: list[Standing], siblings: Mapping[str, list[Standing]]
) -> Claim:
    answers = [(standing, *_answer(kind, standing, siblings.get(standing.lane.id, []))) for standing in lanes]
    worst = max(answers, key=lambda answer: ORDER.index(answer[1]))
    state = worst[1]
    named = tuple(standing.lane.id for standing, found, _, _ in answers if found is state)
    return Claim(sentence[:SHOWN], kind.name, state, worst[2], lanes=named, commit=worst[3], line=number)


def _answer(kind: Kind, standing: Standing, siblings: list[Standing]) -> Answer:
    lane, record = standing.lane, standing.current
    if record is not None and _contradicts(kind, record):
        return ClaimState.CONTRADICTED, f"{lane.id}: {kind.stage} is red at this commit", record.head
    if record is not None and _proves(kind, record, standing.evidence):
        return ClaimState.PROVEN, f"{lane.id}: {_how(kind, record)}", record.head
    flag = str(kind.evidence)
    stale = standing.stale_with(flag) if kind.outcome is None else None
    if stale is not None:
        return ClaimState.STALE, f"{lane.id}: proven for {stale.head[:10]}, not for this commit", stale.head
    for other in siblings:
        if other.current is not None and _proves(kind, other.current, other.evidence):
            told = f"{lane.id}: proven on {other.lane.arch}, which says nothing of how it behaves on {lane.arch}"
            return ClaimState.OTHER_DEVICE, told, other.current.head
    return ClaimState.UNPROVEN, f"{lane.id}: no record of this commit shows it", None


def _proves(kind: Kind, record: Record, evidence: tuple[str, ...]) -> bool:
    if str(kind.evidence) not in evidence:
        return False
    if kind.outcome is not None:
        return any(stage.stage is Stage.BENCH and stage.outcome is kind.outcome for stage in record.stages)
    return kind.name != "mirror-exact" or _compared_mirror(record)


def _compared_mirror(record: Record) -> bool:
    """Whether the exact stage compared two arms that differ by the mirror."""
    exact = next((stage for stage in record.stages if stage.stage is Stage.EXACT), None)
    comparisons = exact.measurements.get("comparisons", []) if exact else []
    return any("mirror" in str(comparison.get("name")) for comparison in comparisons if isinstance(comparison, dict))


def _contradicts(kind: Kind, record: Record) -> bool:
    failed = {Outcome.FAIL, Outcome.LOSS}
    return any(stage.stage is kind.stage and stage.outcome in failed for stage in record.stages)


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


def _closing(line: str, number: int, proven: bool) -> Claim:
    state = ClaimState.PROVEN if proven else ClaimState.UNPROVEN
    reason = "every claim beside it is proven" if proven else "it closes an issue while claims beside it are unproven"
    return Claim(line.strip()[:SHOWN], "closes", state, reason, line=number)

"""What the gates measured, as the page draws it: comparisons, launch counts, metrics with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenlane.report import signs
from greenlane.report.page.loose import figure, mapping, mappings, number, numbers, word
from greenlane.report.signs import Family

DIVERGENCES = 6  # shown per comparison
ARMS = ("head", "base", "control")
PLOT = 300.0  # width of a plot
CHANGED = {"win": Family.GOOD, "loss": Family.BAD}


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two arms part: the tokens before it, and what each arm said."""

    prompt: str
    index: str
    context: tuple[str, ...]
    left: str
    right: str
    left_margin: str
    right_margin: str
    gap: str  # of the device's token below the best by teacher forcing


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    left: str
    right: str
    policy: str
    outcome: str
    family: Family
    positions: str
    largest_gap: str
    reason: str
    divergences: tuple[Divergence, ...]
    more: int


def comparisons(measured: Mapping[str, Any]) -> tuple[Comparison, ...]:
    return tuple(_comparison(found) for found in mappings(measured.get("comparisons"))[:24])


def _comparison(found: Mapping[str, Any]) -> Comparison:
    parted = mappings(found.get("divergences"))
    equal, all_ = number(found.get("equal_positions")), number(found.get("positions"))
    gap = number(found.get("largest_gap_nats"))
    return Comparison(
        name=word(found.get("name")),
        left=word(found.get("left")),
        right=word(found.get("right")),
        policy=word(found.get("policy")).replace("_", " "),
        outcome=word(found.get("outcome")),
        family=signs.of_outcome(word(found.get("outcome"))),
        positions=f"{equal:.0f} of {all_:.0f}" if equal is not None and all_ is not None else "",
        largest_gap=f"{gap:.4f} nats" if gap is not None else "",
        reason=word(found.get("reason")),
        divergences=tuple(_divergence(one) for one in parted[:DIVERGENCES]),
        more=max(0, len(parted) - DIVERGENCES),
    )


def _divergence(found: Mapping[str, Any]) -> Divergence:
    context = found.get("context")
    index = number(found.get("index"))
    at_it = [gap for gap in mappings(found.get("gaps")) if number(gap.get("index")) == index]
    gap = number(at_it[0].get("gap_nats")) if at_it else number(found.get("oracle_gap_nats"))
    return Divergence(
        prompt=word(found.get("prompt")),
        index=f"{index:.0f}" if index is not None else "?",
        context=tuple(word(token) for token in context[-3:]) if isinstance(context, list | tuple) else (),
        left=_token(found.get("left")),
        right=_token(found.get("right")),
        left_margin=_nats(found.get("left_margin")),
        right_margin=_nats(found.get("right_margin")),
        gap=_nats(gap),
    )


def _token(value: object) -> str:
    return "end" if value is None else word(value)


def _nats(value: object) -> str:
    found = number(value)
    return f"{found:.4f}" if found is not None else ""


@dataclass(frozen=True, slots=True)
class Counter:
    """How often a kernel was launched with the feature on and off."""

    kernel: str
    on: str
    off: str


def counters(measured: Mapping[str, Any]) -> tuple[Counter, ...]:
    on, off = (mapping(mapping(measured.get(arm)).get("launches")) for arm in ("on", "off"))
    names = list(dict.fromkeys([*on, *off]))[:60]
    return tuple(Counter(name, _count(on.get(name)), _count(off.get(name))) for name in names)


def _count(value: object) -> str:
    found = number(value)
    return f"{found:,.0f}".replace(",", "\u2009") if found is not None else "—"


@dataclass(frozen=True, slots=True)
class Interval:
    """An effect with its interval, drawn on an axis of `PLOT` whose middle is no change."""

    low: float
    high: float
    effect: float
    margin_low: float
    margin_high: float
    ends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Strip:
    """The raw samples of one arm, and their median."""

    arm: str
    dots: tuple[float, ...]
    median: float
    value: str


@dataclass(frozen=True, slots=True)
class MetricView:
    name: str
    unit: str
    verdict: str
    family: Family
    said: str  # the effect and its interval, or the median
    visible: str  # smallest effect that the run could have seen
    interval: Interval | None
    strips: tuple[Strip, ...]
    ends: tuple[str, str]  # of the axis of the samples


def metrics(measured: Mapping[str, Any]) -> tuple[MetricView, ...]:
    found = mapping(measured.get("metrics"))
    samples = mappings(measured.get("samples"))[:400]
    return tuple(_metric(word(name), mapping(about), samples) for name, about in list(found.items())[:24])


def _metric(name: str, about: Mapping[str, Any], samples: list[Mapping[str, Any]]) -> MetricView:
    values = {arm: _of_arm(samples, arm, name) for arm in ARMS}
    every = [value for found in values.values() for value in found]
    low, high = (min(every), max(every)) if every else (0.0, 0.0)
    verdict = word(about.get("verdict"))
    visible = number(about.get("smallest_visible_effect"))
    return MetricView(
        name=name,
        unit=word(about.get("unit")),
        verdict=verdict,
        family=CHANGED.get(verdict, Family.NONE),
        said=_said(about),
        visible=f"{100 * visible:.1f} %" if visible is not None else "",
        interval=_interval(about),
        strips=tuple(_strip(arm, found, low, high) for arm, found in values.items() if found),
        ends=(figure(low), figure(high)) if every else ("", ""),
    )


def _of_arm(samples: list[Mapping[str, Any]], arm: str, metric: str) -> list[float]:
    found = [number(mapping(one.get("values")).get(metric)) for one in samples if one.get("arm") == arm]
    return [value for value in found if value is not None]


def _strip(arm: str, values: list[float], low: float, high: float) -> Strip:
    middle = sorted(values)[len(values) // 2]
    return Strip(arm, tuple(_on(value, low, high) for value in values), _on(middle, low, high), figure(middle))


def _on(value: float, low: float, high: float) -> float:
    """Its place on an axis from `low` to `high`; alone it stands in the middle."""
    return round(PLOT * (value - low) / (high - low), 1) if high > low else PLOT / 2


def _said(about: Mapping[str, Any]) -> str:
    ends, effect = numbers(about.get("interval")), number(about.get("effect"))
    if len(ends) == 2 and effect is not None:
        return f"{100 * effect:+.1f} % [{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]"
    median = number(about.get("median"))
    return figure(median) if median is not None else ""


def _interval(about: Mapping[str, Any]) -> Interval | None:
    ends, effect = numbers(about.get("interval")), number(about.get("effect"))
    if len(ends) != 2 or effect is None:
        return None
    margin = abs(number(about.get("margin")) or 0.0)
    reach = max(abs(ends[0]), abs(ends[1]), 2 * margin, 1e-6)
    low, high, middle, margin_low, margin_high = (
        _on(value, -reach, reach) for value in (*ends, effect, -margin, margin)
    )
    return Interval(low, high, middle, margin_low, margin_high, (f"{-100 * reach:+.1f} %", f"{100 * reach:+.1f} %"))

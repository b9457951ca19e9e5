"""Token ids of two arms, position by position: never text, and never fewer positions than there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from greenlane.gates.commands import Failed
from greenlane.gates.generation import Answer, Generation
from greenlane.record.model import Outcome

CONTEXT = 3  # tokens shown before a divergence


@dataclass(frozen=True)
class Divergence:
    """Where two answers part for the first time."""

    prompt: str
    index: int
    left: int | None  # None: this side ended here
    right: int | None
    context: tuple[int, ...]
    left_margin: float | None  # nats between each side's choice and its runner-up
    right_margin: float | None

    def __str__(self) -> str:
        where = f"{self.prompt!r} diverges at index {self.index}: {said(self.left)} against {said(self.right)}"
        margins = [m for m in (self.left_margin, self.right_margin) if m is not None]
        gap = f", gap {' / '.join(f'{m:.4f}' for m in margins)} nats to the runner-up" if margins else ""
        return f"{where}{gap}, after {list(self.context)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "prompt": self.prompt,
            "index": self.index,
            "left": self.left,
            "right": self.right,
            "context": list(self.context),
            "left_margin": self.left_margin,
            "right_margin": self.right_margin,
        }


def said(token: int | None) -> str:
    return "the end" if token is None else f"token {token}"


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """
    >>> first_difference([1, 2, 3], [1, 9, 3])
    1
    >>> first_difference([1, 2], [1])
    1
    >>> first_difference([1, 2], [1, 2]) is None
    True
    """
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def divergence(left: Answer, right: Answer) -> Divergence | None:
    index = first_difference(left.token_ids, right.token_ids)
    if index is None:
        return None
    return Divergence(
        prompt=left.name or "?",
        index=index,
        left=at(left.token_ids, index),
        right=at(right.token_ids, index),
        context=left.token_ids[max(0, index - CONTEXT) : index],
        left_margin=left.margin(index),
        right_margin=right.margin(index),
    )


def at(token_ids: Sequence[int], index: int) -> int | None:
    return token_ids[index] if index < len(token_ids) else None


def pairs(left: Generation, right: Generation, names: tuple[str, str]) -> list[tuple[Answer, Answer]]:
    """Answers to the same prompts; two arms that read different prompts can't be compared."""
    paired = list(zip(left.requests, right.requests, strict=True))
    for a, b in paired:
        if a.prompt_token_ids is None or b.prompt_token_ids is None:
            continue
        index = first_difference(a.prompt_token_ids, b.prompt_token_ids)
        if index is not None:
            text = (
                f"{a.name!r} is tokenised differently: {names[0]} has {said(at(a.prompt_token_ids, index))} at index"
                f" {index}, {names[1]} has {said(at(b.prompt_token_ids, index))}; different prompts can't be compared"
            )
            raise Failed(Outcome.VOID, text)
    if not any(answer.token_ids for pair in paired for answer in pair):
        raise Failed(Outcome.VOID, "neither arm gave a token: nothing was compared")
    return paired


def positions(paired: Sequence[tuple[Answer, Answer]]) -> int:
    return sum(max(len(a.token_ids), len(b.token_ids)) for a, b in paired)


def told_apart(left: Generation, right: Generation, moved: Sequence[str], names: tuple[str, str]) -> dict[str, Any]:
    """Evidence that two arms of one program took different ways; identical arms prove nothing."""
    for counter in moved:
        on, off = left.kernel_launches.get(counter, 0), right.kernel_launches.get(counter, 0)
        if on == 0:
            raise Failed(Outcome.VOID, f"{counter} was never launched in {names[0]}: the arms are identical")
        if off > 0:
            raise Failed(Outcome.VOID, f"{counter} was launched {off} times in {names[1]} too: the arms are identical")
    ways = left.how, right.how
    if (ways[0] or ways[1]) and ways[0] == ways[1]:
        raise Failed(Outcome.VOID, f"{names[0]} and {names[1]} ran the same way by their own account: identical arms")
    differing = sorted(key for key in ways[0].keys() | ways[1].keys() if ways[0].get(key) != ways[1].get(key))
    return {"differ_in": differing, "moved": {name: left.kernel_launches[name] for name in moved}}

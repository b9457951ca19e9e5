"""The prompts of a workload, read from the matrix or from a file of the project."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from greenlane.gates.commands import Failed
from greenlane.matrix.gates import Prompt, Workload
from greenlane.record.model import Outcome


@dataclass(frozen=True)
class Asked:
    """One request as it goes to an engine."""

    name: str
    prompt: Prompt
    max_tokens: int

    def to_json(self) -> dict[str, Any]:
        return self.prompt.model_dump(exclude_none=True, exclude={"name"}) | {"max_tokens": self.max_tokens}


def load(workload: Workload, source: Path) -> tuple[Asked, ...]:
    prompts = from_file(source / workload.prompts) if isinstance(workload.prompts, str) else workload.prompts
    asked = tuple(request(workload, prompt, at) for at, prompt in enumerate(prompts[: workload.take]))
    if not asked:
        raise Failed(Outcome.VOID, "the workload has no prompts: nothing to compare")
    names = [one.name for one in asked]
    if twice := {name for name in names if names.count(name) > 1}:
        raise Failed(Outcome.VOID, f"two prompts are named {sorted(twice)[0]!r}; names tell answers apart")
    if workload.arrivals and len(workload.arrivals) != len(asked):
        raise Failed(Outcome.VOID, f"{len(workload.arrivals)} arrivals for {len(asked)} prompts")
    return asked


def request(workload: Workload, prompt: Prompt, position: int) -> Asked:
    wanted = prompt.max_tokens or workload.max_tokens
    return Asked(prompt.name or f"prompt-{position}", prompt, min(wanted, workload.cap_tokens or wanted))


def from_file(path: Path) -> tuple[Prompt, ...]:
    """A JSON list of prompts, or an object that holds one as `prompts`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        listed = document["prompts"] if isinstance(document, dict) else document
        return tuple(Prompt.model_validate(entry) for entry in listed)
    except OSError as error:
        raise Failed(Outcome.VOID, f"can't read the prompts: {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise Failed(Outcome.VOID, f"{path} is not a list of prompts: {first}") from None

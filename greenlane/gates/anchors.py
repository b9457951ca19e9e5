"""Anchors: the ids that one device gave when a reviewer last looked, with each gap to the oracle and its runner-up."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greenlane.gates.commands import Failed
from greenlane.gates.generation import Generation, Identity, slug
from greenlane.record.model import Outcome


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Gap(Part):
    """One position at which the device's token is not the teacher's best one."""

    index: int = Field(ge=0)
    token_id: int
    best: int
    gap_nats: float = Field(ge=0)
    runner_up: int
    runner_up_margin_nats: float  # between the teacher's best token and its runner-up


class Anchored(Part):
    name: str
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    gaps: tuple[Gap, ...] = ()


class Anchor(Part):
    """What is recorded is valid for exactly this device, oracle, mode, arm and teacher."""

    device: str
    oracle: Identity
    arm: str  # the arm's name and options: batch size and precision are part of them
    teacher: str  # digest of the scoring command
    head: str  # commit that was run
    captured: str  # date
    requests: tuple[Anchored, ...]

    def dumps(self) -> str:
        """One line per request, so that a diff shows which prompt moved."""
        head = json.dumps(self.model_dump(exclude={"requests"}), indent=1)
        requests = ",\n".join("  " + json.dumps(request.model_dump()) for request in self.requests)
        return f'{head[:-2]},\n "requests": [\n{requests}\n ]\n}}\n'


def path(folder: Path, device: str, oracle: Identity, arm: str) -> Path:
    return folder / device / f"{slug(' '.join((oracle.name, oracle.mode, arm)))}.json"


def oracle_of(found: Generation, arm: str) -> Identity:
    return found.oracle or Identity(name=arm)


def digest(command: str) -> str:
    return hashlib.sha256(command.encode()).hexdigest()[:16]


def load(file: Path, device: str, oracle: Identity, arm: str) -> Anchor:
    try:
        anchor = Anchor.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError:
        text = f"no anchor for {device} against {oracle.name} ({oracle.mode or 'no mode'}): {file} is missing"
        raise Failed(Outcome.VOID, f"{text}; run `greenlane anchors capture LANE` and commit it") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise Failed(Outcome.VOID, f"{file} is not an anchor: {str(error).splitlines()[0]}") from None
    for what, recorded, now in (
        ("device", anchor.device, device),
        ("oracle", anchor.oracle, oracle),
        ("arm", anchor.arm, arm),
    ):
        if recorded != now:
            raise Failed(
                Outcome.VOID, f"{file} is for another {what} ({said(recorded)}, now {said(now)}); capture again"
            )
    return anchor


def said(value: Any) -> str:
    return " ".join(value.model_dump().values()) if isinstance(value, Identity) else str(value)

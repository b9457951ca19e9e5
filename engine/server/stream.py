"""One accepted request between the server's handlers and the engine's thread."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from engine.choice import Delta
from engine.llm import Request


@dataclass(eq=False)
class Stream:
    """As the handlers see it. `queue` gets (stream, delta) pairs, and may be shared."""

    request: Request
    queue: asyncio.Queue[tuple[Stream, Delta] | None]
    every_token: bool  # else only the last delta of each choice is handed over
    deadline: float | None  # monotonic seconds
    accepted: float = field(default_factory=time.monotonic)
    last_token: dict[int, float] = field(default_factory=dict)  # by choice
    open_choices: int = 0
    closed: bool = False

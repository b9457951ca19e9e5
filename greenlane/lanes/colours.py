"""How an outcome looks on a terminal."""

from __future__ import annotations

from greenlane.record.model import Outcome

SIGN = {outcome: "✓" if outcome.is_green else "✗" if outcome.is_red else "–" for outcome in Outcome}
COLOUR = {outcome: "green" if outcome.is_green else "red" if outcome.is_red else "yellow" for outcome in Outcome}

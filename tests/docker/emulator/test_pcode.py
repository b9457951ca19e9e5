"""Most instructions of the tables, on random operands and edge values, against AMD's own pseudo-code."""

from __future__ import annotations

import pytest
from emulator_box import Box
from oracle import check, compared

pytestmark = pytest.mark.docker


def test_instructions_compute_what_amds_pseudo_code_says(box: Box) -> None:
    check(compared(box, "gfx1100"), at_least=390)

"""AMD's pseudo-code on every generation that the emulator knows; the Docker tier tries gfx1100 alone."""

from __future__ import annotations

import pytest
from oracle import check, compared

from tests.docker.conftest import daemon  # noqa: F401
from tests.docker.emulator.conftest import box  # noqa: F401

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("arch", "at_least"), [("gfx1151", 390), ("gfx1201", 390), ("gfx942", 300)])
def test_instructions_compute_what_amds_pseudo_code_says(box, arch: str, at_least: int) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    check(compared(box, arch), at_least)

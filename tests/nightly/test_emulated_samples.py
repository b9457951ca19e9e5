"""The samples on the siblings of the architectures that the Docker tier takes."""

from __future__ import annotations

import pytest

from tests.docker.conftest import daemon  # noqa: F401
from tests.docker.emulator import test_samples
from tests.docker.emulator.conftest import box  # noqa: F401

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("arch", ["gfx1151", "gfx90a"])
@pytest.mark.parametrize("sample", test_samples.SAMPLES)
def test_a_sample_computes_what_the_cpu_computes(box, sample: str, arch: str) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    test_samples.test_sample_computes_what_the_cpu_computes(box, sample, arch)

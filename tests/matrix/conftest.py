"""Small matrices for the tests of the matrix language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.matrix.loading import Loaded, compile_matrix

SMALL = """\
version: 1
backends:
  cpu:
    row: BACKEND-CPU
    compiler: gcc
    require: [built]
    macros: {USE_CPU: 1}
    variants: {clang: {compiler: clang}, sanitize: {tags: [slow]}}
  rocm:
    compiler: hipcc
    toolkits: {"7.0": {}, "6.4": {}}
    toolkit: "7.0"
    vendors: [hip]
    macros: {USE_HIP: 1}
    archs: {gfx1100: {timeout: 2h}}
lanes:
  products:
    - {backend: cpu, variant: [null, clang, sanitize]}
    - {backend: rocm, toolkit: ["7.0", "6.4"], arch: [gfx1100, gfx942]}
  exclude:
    - {toolkit: "6.4", arch: gfx942, why: nobody ships it}
  overrides:
    - {lanes: "rocm-*", env: {HIP_VISIBLE_DEVICES: 0}}
constraints: ["!(USE_CPU && USE_HIP)"]
stages: {build: "make -j{jobs}", test: make check}
"""


@pytest.fixture
def small() -> str:
    return SMALL


@pytest.fixture
def compiled() -> Callable[[str], Loaded]:
    """Compiles a matrix from its text; its name in messages is m.yaml."""
    return lambda text: compile_matrix(text.encode(), "m.yaml")


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

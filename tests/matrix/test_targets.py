"""The table of targets, and which compilers are fit for them."""

from __future__ import annotations

import pytest

from greenlane.matrix.targets import compiler_is_unfit, targets, version_of


def test_every_entry_is_whole() -> None:
    for name, target in targets().items():
        assert target.vendor == ("amd" if name.startswith("gfx") else "nvidia")
        assert target.wavefront in (32, 64)
        assert target.family
        assert target.first, name
        assert all(version_of(version) for version in (*target.first.values(), *target.dropped.values()))
        assert target.generic is None or target.generic in targets(), name


@pytest.mark.parametrize(
    ("name", "wavefront"), [("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1201", 32), ("sm_90", 32)]
)
def test_wavefronts(name: str, wavefront: int) -> None:
    assert targets()[name].wavefront == wavefront


def test_a_sibling_card_is_of_the_same_family() -> None:
    assert targets()["gfx1151"].family == targets()["gfx1100"].family == "gfx11"
    assert targets()["gfx1201"].family != targets()["gfx1100"].family
    assert targets()["sm_90a"].family == targets()["sm_90"].family


@pytest.mark.parametrize(
    ("name", "compiler", "version", "unfit"),
    [
        ("gfx1151", "hipcc", "5.2", "too old"),
        ("gfx1151", "hipcc", "7.0", None),
        ("gfx1201", "clang", "16.0.6", "too old"),
        ("gfx1201", "clang", "17.0.6", "too old"),
        ("gfx1201", "clang", "18.1.1", None),
        ("gfx12-generic", "clang", "19.1", None),
        ("gfx950", "clang", "19.1", "too old"),
        ("gfx950", "clang", "20.1", None),
        ("gfx1151", "clang", "16.0", "too old"),
        ("gfx942", "clang", "17.0.6", None),
        ("gfx940", "clang", "21.1", "no longer builds"),
        ("sm_100a", "clang", "19.1", "too old"),
        ("sm_120", "nvcc", "12.8.61", None),
        ("sm_121", "nvcc", "12.8.93", "too old"),
        ("sm_103f", "nvcc", "12.9.41", None),
        ("sm_110", "nvcc", "12.9", "too old"),
        ("sm_101", "nvcc", "13.0", "no longer builds"),
        ("sm_107", "nvcc", "13.3", "too old"),
        ("sm_90a", "nvcc", "11.8", "too old"),
        ("sm_100a", "nvcc", "12.6", "too old"),
        ("sm_70", "nvcc", "13.0", "no longer builds"),
        ("sm_70", "nvcc", "12.9", None),
        ("sm_90", "nvcc", "11", None),  # 11 may be 11.8: who says less is believed
        ("gfx1151", "icx", "1", None),
        ("gfx1151", "clang", None, None),
        ("gfx1151", "clang", "trunk", None),
    ],
)
def test_a_compiler_is_fit_or_not(name: str, compiler: str, version: str | None, unfit: str | None) -> None:
    why = compiler_is_unfit(targets()[name], compiler, version)
    assert (why is None) if unfit is None else (why is not None and unfit in why)

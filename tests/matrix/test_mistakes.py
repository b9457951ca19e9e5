"""Each mistake is found, all of them in one run, each at its line and column and with the nearest right name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.cli import main
from greenlane.errors import MatrixError
from greenlane.matrix.loading import Loaded, compile_matrix

PLANTED = Path(__file__).with_name("planted.yaml")
EXPECTED = (
    ("3:3", "unknown key 'timout'; did you mean 'timeout'?"),
    ("4:11", "memory: a size such as 512MiB or 8GiB is wanted"),
    ("9:5", "duplicate key 'macros', first written in line 8"),
    ("16:15", "'build' is not one of"),
    ("20:14", "emulate: true or false is wanted"),
    ("21:13", "lane rocm-gfx1151: USE_HIP, USE_CUDA on violates the constraint"),
    ("22:15", "lane rocm-gfx1151: 'exact' is out of reach: it has no exact stage"),
    ("26:23", "no variant 'clnag'; did you mean 'clang'?"),
    ("28:14", "nvcc 11.0 is too old for sm_90, which needs 11.8 or later"),
    ("30:14", "knows the arch 'gxf1032'; did you mean 'gfx1032'?"),
    ("30:23", "hipcc 5.2 is too old for gfx1151"),
    ("31:16", "no backend 'rocn'; did you mean 'rocm'?"),
    ("33:7", "the lane id 'cpu' exists twice"),
    ("36:7", "the key 'why' is missing"),
    ("37:7", "this exclusion matches no combination"),
    ("39:15", "'cuda-sm90' matches no lane; did you mean 'cuda-sm_90'?"),
    ("40:20", "'compiler' of this override changes nothing"),
    ("41:41", "a macro is wanted at the end"),
    ("42:12", "'windows' matches no lane"),
    ("43:17", "unknown placeholder {bilud}; did you mean 'build'?"),
    ("45:5", "`expires` must be later than `since`"),
    ("46:24", "'tests' is not one of check, image"),
)


def mistakes(text: str) -> list[str]:
    with pytest.raises(MatrixError) as error:
        compile_matrix(text.encode(), "m.yaml")
    return list(error.value.problems)


def test_every_planted_mistake_is_reported_at_its_place_and_nothing_else() -> None:
    found = mistakes(PLANTED.read_text())
    assert len(EXPECTED) >= 20
    for place, text in EXPECTED:
        assert any(line.startswith(f"m.yaml:{place}: ") and text in line for line in found), (place, text, found)
    assert len(found) == len(EXPECTED)


def test_the_command_line_prints_the_mistakes_and_exits_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--matrix", str(PLANTED)]) == 2
    assert "timout" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "compiler: hipcc\n",
            "compiler: hipcc\n    toolkitt: x\n",
            "m.yaml:11:5: unknown key 'toolkitt'; did you mean 'toolkit'",
        ),
        (
            'toolkit: "7.0"\n',
            'toolkit: "7.1"\n',
            "m.yaml:12:14: the default toolkit '7.1' is not declared; did you mean '7.0'?",
        ),
        ('    toolkit: "7.0"\n', "", "m.yaml:11:15: several toolkits: name the default one by `toolkit`"),
        (
            "variant: [null, clang, sanitize]",
            "variant: [null, clang]",
            "no lane uses 'sanitize' of the variants of 'cpu'",
        ),
        ("why: nobody ships it", "why: x", "why"),
        (
            'exclude:\n    - {toolkit: "6.4", arch: gfx942,',
            "exclude:\n    - {",
            "names lanes, backend, toolkit, arch or variant",
        ),
        ("require: [built]", "require: [tested, benched]", "'benched' is out of reach: it has no bench stage"),
        ("require: [built]", "require: [built, emulated]", "'emulated' is out of reach: `emulate` is not on"),
        ("make -j{jobs}", "make {arch}", "there is no architecture for {arch}"),
        ("timeout: 2h", "timeout: soon", "m.yaml:15:32: timeout: a duration such as 90s, 20m or 1h30m is wanted"),
        ("gfx1100: {timeout: 2h}", "gfx1199: {timeout: 2h}", "no compiler knows the arch 'gfx1199'"),
        ("macros: {USE_CPU: 1}", "macros: {USE-CPU: 1}", "the name of a preprocessor macro is wanted"),
        ("macros: {USE_CPU: 1}", "macros: [USE_CPU]", "m.yaml:7:13: macros: a mapping is wanted"),
        ("HIP_VISIBLE_DEVICES: 0", "X: '{jobz}'", "unknown placeholder {jobz}; did you mean 'jobs'?"),
        ("stages: {build:", "stages: {exact:", "'exact' is not one of image, configure, build, test"),
        ('toolkit: ["7.0", "6.4"]', "toolkit: []", "m.yaml:19:32: toolkit: it must not be empty"),
        ("variant: [null, clang, sanitize]", "variant: []", "variant: it must not be empty"),
        ('lanes: "rocm-*"', "lanes: []", "m.yaml:23:15: lanes: it must not be empty"),
        ("compiler: hipcc", "dockerfile: ../x", "dockerfile: a path below the matrix's folder is wanted"),
        ("compiler: hipcc", "dockerfile: /etc/x", "dockerfile: a path below the matrix's folder is wanted"),
        (
            'toolkit: "6.4", arch: gfx942',
            'lanes: [rocm-gfx942, "cuda-*"]',
            "m.yaml:21:7: 'cuda-*' of this exclusion matches",
        ),
        ("version: 1", "version: 2", "m.yaml:1:10: version: 2 is not one of 1"),
    ],
)
def test_a_mistake_is_named(small: str, old: str, new: str, expected: str) -> None:
    assert old in small
    assert any(expected in line for line in mistakes(small.replace(old, new, 1)))


def test_no_lane_at_all_is_a_mistake() -> None:
    found = mistakes("version: 1\nbackends: {cpu: {}}\nlanes: {}\n")
    assert "m.yaml:3:8: the matrix has no lane" in found


def test_a_product_of_too_many_lanes_is_refused() -> None:
    names = ", ".join(f"v{n}" for n in range(150))
    declared = ", ".join(f"v{n}: {{}}" for n in range(150))
    archs = declared.replace("v", "a").replace("{}", "{family: x}")
    text = f"backends: {{cpu: {{variants: {{{declared}}}, archs: {{{archs}}}}}}}\n"
    text += f"lanes: {{products: [{{backend: cpu, variant: [{names}], arch: [{names.replace('v', 'a')}]}}]}}\n"
    assert any("more than 20000 lanes" in line for line in mistakes(text))


def test_mistakes_in_gates_stand_at_the_layer_that_wrote_them(small: str) -> None:
    text = (
        small + "gates:\n  bench:\n    command: run\n    metrics: {speed: {path: a, direction: up}}\n    budgit_s: 3\n"
    )
    found = mistakes(text)
    assert any(line.startswith("m.yaml:30:5: unknown key 'budgit_s'; did you mean 'budget_s'") for line in found), found
    assert any(line.startswith("m.yaml:29:43: direction: 'up' is not one of higher, lower") for line in found), found


def test_a_mistake_shared_by_lanes_is_said_once_with_their_names(small: str) -> None:
    found = [line for line in mistakes(small.replace("USE_HIP: 1", "USE_HIP: 1, USE_CPU: 1")) if "violates" in line]
    assert found == [
        "m.yaml:14:13: lanes rocm-gfx1100, rocm-gfx1100-6.4, rocm-gfx942: "
        "USE_HIP, USE_CPU on violates the constraint '!(USE_CPU && USE_HIP)' of line 24"
    ]


def test_the_small_matrix_itself_has_no_mistake(small: str, compiled: Callable[[str], Loaded]) -> None:
    assert [lane.id for lane in compiled(small).matrix.lanes] == [
        "cpu",
        "cpu-clang",
        "cpu-sanitize",
        "rocm-gfx1100",
        "rocm-gfx1100-6.4",
        "rocm-gfx942",
    ]

"""Expansion: layers, exclusions, stable ids, digests that change exactly with what affects a lane."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from greenlane.matrix.loading import Loaded

Compile = Callable[[str], Loaded]


def lane(loaded: Loaded, lane_id: str):  # type: ignore[no-untyped-def]
    found = loaded.matrix.lane(lane_id)
    assert found is not None, lane_id
    return found


def digests(loaded: Loaded) -> dict[str, str]:
    return {one.id: one.digest for one in loaded.matrix.lanes}


def test_layers_apply_in_order_and_later_ones_win(compiled: Compile) -> None:
    loaded = compiled(
        """\
defaults: {timeout: 1m, env: {A: 1, B: 1}, tags: [all]}
backends:
  x:
    timeout: 2m
    env: {B: 2, C: 2}
    toolkits: {"1": {timeout: 3m}, "2": {pids: 7}}
    toolkit: "1"
    archs: {gfx942: {timeout: 4m}, gfx90a: {}}
    variants: {v: {timeout: 5m, tags: [v]}}
lanes:
  products:
    - {backend: x, toolkit: ["1", "2"], arch: [gfx942, gfx90a], variant: [null, v]}
    - {backend: x, timeout: 6m}
  overrides:
    - {lanes: "*-v", env: {C: null}}
    - {lanes: x-gfx942-v, timeout: 7m}
stages: {build: make}
"""
    )
    seconds = {one.id: one.limits.timeout_s for one in loaded.matrix.lanes}
    assert seconds == {
        "x": 360, "x-gfx90a": 180, "x-gfx90a-2": 120, "x-gfx90a-2-v": 300, "x-gfx90a-v": 300,
        "x-gfx942": 240, "x-gfx942-2": 240, "x-gfx942-2-v": 300, "x-gfx942-v": 420,
    }  # fmt: skip
    assert lane(loaded, "x-gfx942-v").env == {"A": "1", "B": "2"}
    assert lane(loaded, "x-gfx942-v").tags == ("x", "all", "v")
    assert lane(loaded, "x").env == {"A": "1", "B": "2", "C": "2"}


def test_the_known_targets_give_wavefront_and_family(small: str, compiled: Compile) -> None:
    loaded = compiled(small)
    assert (lane(loaded, "rocm-gfx1100").wavefront, lane(loaded, "rocm-gfx1100").family) == (32, "gfx11")
    assert lane(loaded, "rocm-gfx942").wavefront == 64
    assert lane(loaded, "cpu").wavefront is None


def test_a_backend_may_declare_its_own_architecture(compiled: Compile) -> None:
    loaded = compiled(
        "backends: {npu: {archs: {n1: {family: n, wavefront: 16}}}}\nlanes: {products: [{backend: npu, arch: n1}]}\n"
    )
    assert (lane(loaded, "npu-n1").archs, lane(loaded, "npu-n1").wavefront) == (("n1",), 16)


def test_a_name_may_stand_for_several_targets(compiled: Compile) -> None:
    loaded = compiled(
        "backends: {cuda: {defines: {A: '{archs}'}, archs: {fat: {targets: [sm_80, sm_90a]}}}}\n"
        "lanes: {products: [{backend: cuda, arch: fat}]}\n"
    )
    assert lane(loaded, "cuda-fat").archs == ("sm_80", "sm_90a")
    assert lane(loaded, "cuda-fat").defines == {"A": "sm_80;sm_90a"}


def test_an_exclusion_says_why_and_an_include_comes_after_it(small: str, compiled: Compile) -> None:
    loaded = compiled(small)
    assert [(one.id, one.why) for one in loaded.expansion.excluded] == [("rocm-gfx942-6.4", "nobody ships it")]
    back = small.replace("  overrides:", "  include: [{backend: rocm, toolkit: '6.4', arch: gfx942}]\n  overrides:")
    assert "rocm-gfx942-6.4" in digests(compiled(back))


def test_a_number_is_taken_as_it_was_written(compiled: Compile) -> None:
    text = "backends: {x: {compiler_version: 12.10, macros: {A: 0x10, B: true}}}\nlanes: {products: [{backend: x}]}\n"
    one = lane(compiled(text), "x")
    assert (one.compiler_version, one.macros) == ("12.10", {"A": "0x10", "B": "true"})


def test_a_lane_without_stages_builds_like_a_scikit_build_project(compiled: Compile) -> None:
    one = lane(compiled("backends: {x: {}}\nlanes: {products: [{backend: x}]}\n"), "x")
    assert list(one.stages) == ["build"]
    assert "pip install" in one.stages["build"][0]


def test_null_takes_a_stage_and_a_gate_away(small: str, compiled: Compile) -> None:
    bench = "gates: {bench: {command: run, metrics: {m: {path: a, direction: higher}}}}\n"
    text = small.replace("env: {HIP_VISIBLE_DEVICES: 0}", "stages: {test: null}, gates: {bench: null}") + bench
    loaded = compiled(text)
    assert set(lane(loaded, "cpu").gates) == {"bench"}
    assert not lane(loaded, "rocm-gfx942").gates
    assert set(lane(loaded, "rocm-gfx942").stages) == {"build"}


def test_an_override_merges_into_a_gate_to_any_depth(small: str, compiled: Compile) -> None:
    bench = (
        "gates: {bench: {command: run, metrics: {m: {path: a, direction: higher}, n: {path: b, direction: lower}}}}\n"
    )
    changed = (
        small.replace("env: {HIP_VISIBLE_DEVICES: 0}", "gates: {bench: {metrics: {m: {path: c}, n: null}}}") + bench
    )
    loaded = compiled(changed)
    assert lane(loaded, "cpu").gates["bench"]["metrics"]["m"]["path"] == "a"
    metrics = lane(loaded, "rocm-gfx942").gates["bench"]["metrics"]
    assert (metrics["m"]["path"], metrics["m"]["direction"], set(metrics)) == ("c", "higher", {"m"})


def test_adding_lanes_and_toolkits_renames_and_redigests_none(small: str, compiled: Compile) -> None:
    before = digests(compiled(small))
    grown = small.replace('"6.4": {}', '"6.4": {}, "6.3": {}').replace('["7.0", "6.4"]', '["6.3", "7.0", "6.4"]')
    grown = grown.replace("[gfx1100, gfx942]", "[gfx942, gfx1030, gfx1100]")
    after = digests(compiled(grown))
    assert before.items() <= after.items()
    assert len(after) > len(before)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("compiler: clang", "compiler: clang++", {"cpu-clang"}),
        ("timeout: 2h", "timeout: 3h", {"rocm-gfx1100", "rocm-gfx1100-6.4"}),
        ("USE_CPU: 1", "USE_CPU: 2", {"cpu", "cpu-clang", "cpu-sanitize"}),
        ("make check", "make test", None),
        ("!(USE_CPU && USE_HIP)", "!(USE_HIP && USE_CPU)", None),
        ("tags: [slow]", "tags: [fast]", set()),
        ("version: 1\n", "version: 1\n# a remark\n", set()),
        ("require: [built]", "require: [tested]", {"cpu", "cpu-clang", "cpu-sanitize"}),
        ('"7.0": {}', '"7.0": {build_args: {X: 1}, dockerfile: d}', {"rocm-gfx1100", "rocm-gfx942"}),
    ],
)
def test_a_digest_changes_exactly_with_what_affects_its_lane(
    small: str, compiled: Compile, old: str, new: str, changed: set[str] | None
) -> None:
    before, after = digests(compiled(small)), digests(compiled(small.replace(old, new, 1)))
    assert old in small
    assert {lane for lane in before if before[lane] != after[lane]} == (set(before) if changed is None else changed)


def test_marks_say_where_each_value_was_written(small: str, compiled: Compile) -> None:
    marks = lane(compiled(small), "rocm-gfx1100").marks
    assert str(marks["timeout"]) == "m.yaml:15:32"
    assert str(marks["macros.USE_HIP"]) == "m.yaml:14:23"
    assert str(marks["env.HIP_VISIBLE_DEVICES"]) == "m.yaml:23:52"
    assert str(marks["id"]) == "m.yaml:19:7"


def test_required_lanes_are_all_that_can_be_built_here_unless_named(small: str, compiled: Compile) -> None:
    hosted = small.replace("{compiler: clang}", "{compiler: clang, hosted_only: needs another system}")
    assert "cpu-clang" not in compiled(hosted).matrix.required
    assert len(compiled(hosted).matrix.required) == 5
    assert "cpu-sanitize" not in compiled(small.replace("tags: [slow]", "tags: [nightly]")).matrix.required
    assert compiled(small + 'required: ["cpu*"]\n').matrix.required == ("cpu", "cpu-clang", "cpu-sanitize")

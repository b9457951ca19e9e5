"""For every matrix: expansion is deterministic, ids are unique, selection is a subset, export is complete."""

from __future__ import annotations

import itertools
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenlane.errors import MatrixError
from greenlane.matrix import export
from greenlane.matrix.loading import Loaded, compile_matrix
from greenlane.matrix.rows import rows_of
from greenlane.matrix.select import Selection

WIDE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ARCHS = ("gfx1100", "gfx1151", "gfx942", "sm_90", "sm_80")
VARIANTS = ("debug", "fast", "lto")
TOOLKITS = ("1", "2")


def setting() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "timeout": st.sampled_from(["1m", "2h", 30]),
            "macros": st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(["1", None]), max_size=2),
            "tags": st.lists(st.sampled_from(["slow", "gpu"]), max_size=2),
            "require": st.lists(st.sampled_from(["checked", "built"]), max_size=2),
        },
    )


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    """A matrix that may hold mistakes; every declared entry is used."""
    backends: dict[str, Any] = {}
    products, include = [], []
    for name in draw(st.lists(st.sampled_from(["cpu", "rocm", "cuda"]), min_size=1, unique=True)):
        archs = draw(st.lists(st.sampled_from(ARCHS), unique=True, max_size=3))
        variants = draw(st.lists(st.sampled_from(VARIANTS), unique=True, max_size=3))
        toolkits = draw(st.lists(st.sampled_from(TOOLKITS), unique=True, max_size=2))
        backends[name] = {**draw(setting()), "variants": {variant: draw(setting()) for variant in variants}}
        if toolkits:
            backends[name] |= {"toolkits": {toolkit: {} for toolkit in toolkits}, "toolkit": toolkits[0]}
        product = {"backend": name, "variant": [None, *variants], **draw(setting())}
        products.append(product | ({"arch": archs} if archs else {}) | ({"toolkit": toolkits} if toolkits else {}))
        extra = st.lists(st.sampled_from([a for a in ARCHS if a not in archs]), unique=True, max_size=3)
        include += [{"backend": name, "arch": arch, **draw(setting())} for arch in draw(extra)]
    return {"backends": backends, "lanes": {"products": products, "include": include}, "stages": {"build": "make"}}


def expand(document: dict[str, Any]) -> Loaded:
    return compile_matrix(yaml.safe_dump(document, sort_keys=False).encode(), "m.yaml")


@WIDE
@given(matrices())
def test_expansion_is_deterministic_and_ids_are_unique(document: dict[str, Any]) -> None:
    first, second = expand(document).matrix, expand(document).matrix
    assert [(lane.id, lane.digest) for lane in first.lanes] == [(lane.id, lane.digest) for lane in second.lanes]
    assert len({lane.id for lane in first.lanes}) == len(first.lanes)
    assert len({lane.digest for lane in first.lanes}) == len(first.lanes)


@WIDE
@given(matrices(), st.randoms())
def test_the_order_of_includes_does_not_matter(document: dict[str, Any], random: Any) -> None:
    before = expand(document).matrix
    random.shuffle(document["lanes"]["include"])
    assert [(lane.id, lane.digest) for lane in expand(document).matrix.lanes] == [
        (lane.id, lane.digest) for lane in before.lanes
    ]


@WIDE
@given(matrices())
def test_the_lanes_are_the_products_and_the_includes(document: dict[str, Any]) -> None:
    expected = set()
    for product in document["lanes"]["products"]:
        default = document["backends"][product["backend"]].get("toolkit")
        axes = (product.get("arch", [None]), product.get("toolkit", [default]), product["variant"])
        for arch, toolkit, variant in itertools.product(*axes):
            parts = (product["backend"], arch, toolkit if toolkit != default else None, variant)
            expected.add("-".join(part for part in parts if part))
    expected |= {f"{one['backend']}-{one['arch']}" for one in document["lanes"]["include"]}
    assert {lane.id for lane in expand(document).matrix.lanes} == expected


WORDS = st.sampled_from(["cpu", "rocm-*", "slow", "backend:cuda", "arch:gfx*", "toolkit:2", "variant:debug", "*"])
EXPRESSIONS = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " or ", ", "]), inner).map("".join),
        inner.map("not {}".format),
        inner.map("({})".format),
    ),
    max_leaves=8,
)


@WIDE
@given(matrices(), EXPRESSIONS)
def test_a_selection_is_a_subset_in_order_and_its_negation_the_rest(document: dict[str, Any], expression: str) -> None:
    rows = rows_of(expand(document).matrix)
    try:
        chosen = Selection(expression).select(rows)
        rest = [row for row in rows if Selection(f"not ({expression})").test(row)]
    except MatrixError:
        return
    assert [row for row in rows if row in chosen] == chosen
    assert sorted(row["id"] for row in [*chosen, *rest]) == sorted(row["id"] for row in rows)


@WIDE
@given(matrices())
def test_an_export_covers_every_lane_exactly_once(document: dict[str, Any]) -> None:
    rows = rows_of(expand(document).matrix)
    groups = export.github(rows)["groups"]
    assert [job["lane"] for group in groups for job in group["include"]] == [row["id"] for row in rows]
    assert all(0 < len(group["include"]) < 256 for group in groups)

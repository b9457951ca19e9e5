"""Marks and spellings are kept; hostile YAML ends in a clear error within 2 s and 200 MB."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from greenlane.errors import MatrixError
from greenlane.matrix.document import Node, parse
from greenlane.matrix.problems import Problems

HOSTILE = {
    "laughs": (
        "x-a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"x-{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "more than 150000 values once aliases are expanded",
    ),
    "merges": (
        "x-a: &a {"
        + ", ".join(f"k{n}: 1" for n in range(500))
        + "}\n"
        + "".join(f"b{n}: {{<<: *a}}\n" for n in range(900)),
        "more than 150000 values",
    ),
    "large": ("x-a: [" + "a," * 5_000_000 + "]\n", "larger than 4194304 bytes"),
    "wide": ("x-a: [" + "a," * 2_000_000 + "]\n", "more than 150000 values"),
    "deep": ("x-a: " + "[" * 1_900_000, "nested deeper than 40 levels|exceeded maximum nesting depth"),
    "deep-block": ("".join(" " * n + "a:\n" for n in range(2500)), "nested deeper than 40 levels"),
    "deep-list": ("- " * 1_900_000, "nested deeper than 40 levels"),
    "cycle": ("x-a: &a [*a]\n", "the alias \\*a stands inside its own anchor"),
    "merge-cycle": ("x-a: &a\n  <<: *a\n", "the alias \\*a stands inside its own anchor"),
    "mapping-cycle": ("backends: &b\n  cpu: {variants: *b}\n", "the alias \\*b stands inside its own anchor"),
    "unknown-keys": ("".join(f"a{n}: 1\n" for n in range(70_000)), "more than 5000 mistakes"),
    "duplicates": ("a: 1\n" * 70_000, "duplicate key 'a'"),
    "digits": ("version: " + "9" * 100_000 + "\n", "is not one of 1"),
    "lanes": (
        "backends: {cpu: {variants: {"
        + ", ".join(f"v{n}: {{}}" for n in range(300))
        + "}, archs: {"
        + ", ".join(f"a{n}: {{family: f}}" for n in range(300))
        + "}}}\n"
        "lanes: {products: [{backend: cpu, arch: ["
        + ", ".join(f"a{n}" for n in range(300))
        + "], variant: ["
        + ", ".join(f"v{n}" for n in range(300))
        + "]}]}\n",
        "more than 20000 lanes",
    ),
    "formula": (
        "backends: {cpu: {}}\nlanes: {products: [{backend: cpu}]}\n"
        f"constraints: ['{'(' * 4000}', '{'<->'.join('ABCDEFGHIJKLMNOP')}']\n",
        "nested deeper than 100 levels",
    ),
}
CHILD = """
import resource, sys
from pathlib import Path
from greenlane.cli import main
code = main(["list", "--matrix", sys.argv[1]])
usage = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss: that is handed down by the process that started this one.
peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(code, peak, usage.ru_utime + usage.ru_stime)
"""


def tree(text: str) -> Node:
    problems = Problems()
    node = parse(text.encode(), "m.yaml", problems)
    problems.raise_any()
    return node


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    text, expected = HOSTILE[name]
    path = tmp_path / "matrix.yaml"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
    )  # fmt: skip
    code, kilobytes, _ = done.stdout.split()
    assert int(code) == 2
    assert int(kilobytes) < 200 * 1024
    assert any(part.replace("\\", "") in done.stderr for part in expected.split("|")), done.stderr[:300]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "m.yaml:1:1: the file is empty"),
        (b"a: \xff", "m.yaml:1:1: not UTF-8 text (byte 0xff)"),
        (b"a: 1\n\x00", "m.yaml:1:1: not valid YAML"),
        (b"a: [1\nb: 2", "m.yaml:2:2: not valid YAML"),
        (b"a: 1\n---\nb: 2\n", "m.yaml:2:1: a second document"),
        (b"a: !!python/object:os.system x\n", "m.yaml:1:4: the tag"),
        (b"? [a, b]\n: 1\n", "m.yaml:1:3: a key must be a plain word"),
        (b"a: *nowhere\n", "m.yaml:1:4: the alias *nowhere has no anchor"),
        (b"a: {<<: 3}\n", "m.yaml:1:9: << takes a mapping"),
    ],
)
def test_what_is_no_document_is_refused_at_its_place(content: bytes, expected: str) -> None:
    with pytest.raises(MatrixError) as error:
        parse(content, "m.yaml", Problems())
    assert str(error.value).startswith(expected)


def test_a_merge_key_brings_values_with_their_own_marks_and_loses_to_written_ones() -> None:
    root = tree("x-base: &base\n  compiler: gcc\n  pids: 4\nlane:\n  <<: *base\n  pids: 5\n")
    lane = root.value["lane"]
    assert lane.plain() == {"pids": 5, "compiler": "gcc"}
    assert (lane.value["compiler"].line, lane.value["compiler"].column) == (2, 13)


def test_a_list_of_merges_takes_the_first() -> None:
    root = tree("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}\n")
    assert root.value["c"].plain() == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("written", "value"),
    [("on", "on"), ("no", "no"), ("2026-11-30", "2026-11-30"), ("true", True), ("~", None), ("0x10", 16)],
)
def test_plain_words_are_read_by_the_core_schema(written: str, value: object) -> None:
    assert tree(f"a: {written}\n").plain() == {"a": value}


def test_a_version_keeps_its_spelling() -> None:
    assert tree("a: 7.10\n").value["a"].value.text == "7.10"


def test_a_quoted_number_is_a_word() -> None:
    assert tree("a: '12'\n").plain() == {"a": "12"}


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    from greenlane import matrix

    with pytest.raises(MatrixError, match="no such file; `greenlane init` writes a first matrix"):
        matrix.load(tmp_path / "matrix.yaml")
    with pytest.raises(MatrixError, match="can't be read"):
        matrix.load(tmp_path)

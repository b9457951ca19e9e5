"""Files that no compiler would take: reported, never a traceback, never a hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenlane.checks.check import run_checks
from greenlane.checks.report import Report
from greenlane.checks.source import parse
from greenlane.matrix.model import Lane, Matrix

MATRIX = Matrix(
    "matrix.yaml", (Lane(id="cpu", backend="cpu"), Lane(id="cuda", backend="cuda", macros={"USE_CUDA": "1"}))
)


def _check(root: Path) -> Report:
    return run_checks(MATRIX, root)


def _reasons(report: Report) -> dict[str, str]:
    return {entry.file: entry.reason for entry in report.unparsed}


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "blob.cpp").write_bytes(b"\x7fELF\0\0\0" * 100)
    assert _reasons(_check(tmp_path)) == {"blob.cpp": "binary"}


def test_a_large_generated_file_is_reported_and_its_names_count(tmp_path: Path) -> None:
    (tmp_path / "table.inc").write_text("static const int row[] = {" + "helper(), " * 900_000 + "};\n")
    (tmp_path / "main.cpp").write_text('static int helper() { return 1; }\n#include "table.inc"\n')
    report = _check(tmp_path)
    assert report.findings == ()
    assert _reasons(report) == {"table.inc": "larger than 4 MB"}


def test_a_file_of_a_hundred_thousand_lines_is_reported(tmp_path: Path) -> None:
    (tmp_path / "long.cpp").write_text("int f();\n" * 100_000)
    assert _reasons(_check(tmp_path)) == {"long.cpp": "longer than 60000 lines"}


def test_unbalanced_conditionals_are_findings(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("#endif\nint a;\n#if USE_CUDA\nint b;\n")
    report = _check(tmp_path)
    assert [(finding.rule, finding.line) for finding in report.findings] == [("guard-dead", 1), ("guard-dead", 3)]


def test_text_that_is_no_utf8_is_read_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "latin.cpp").write_bytes(
        b"// caf\xe9\nstatic int caf\xe9() { return 1; }\nstatic int other() { return 2; }\n"
    )
    report = _check(tmp_path)
    assert [finding.line for finding in report.findings if finding.rule == "unused-function"][-1] == 3


@pytest.mark.skipif(os.getuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "secret.cpp").write_text("int a;\n")
    (tmp_path / "secret.cpp").chmod(0)
    assert _reasons(_check(tmp_path)) == {"secret.cpp": "Permission denied"}


def test_links_that_loop_or_lead_out_are_reported(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "loop.cpp").symlink_to("loop.cpp")
    (tree / "sub" / "up").symlink_to("..")
    (tree / "zero.cpp").symlink_to("/dev/zero")
    (tmp_path / "outside.cpp").write_text("int a;\n")
    (tree / "out.cpp").symlink_to("../outside.cpp")
    assert set(_reasons(_check(tree))) == {"loop.cpp", "sub/up", "zero.cpp", "out.cpp"}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cpp")
    assert _reasons(_check(tmp_path)) == {"pipe.cpp": "no regular file"}


def test_headers_that_include_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#pragma once\n#include "b.h"\nint a();\n')
    (tmp_path / "b.h").write_text('#pragma once\n#include "a.h"\nint b();\n')
    (tmp_path / "main.cpp").write_text('#include "a.h"\nint main() { return a() + b(); }\n')
    assert _check(tmp_path).findings == ()


def test_a_long_chain_of_includes_ends(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"h{number}.h").write_text(f'#pragma once\n#include "h{number + 1}.h"\n')
    (tmp_path / "main.cpp").write_text('#include "h0.h"\nint main() {}\n')
    assert _check(tmp_path).findings == ()


@pytest.mark.parametrize(
    "source",
    [
        "#if " + "(" * 5000 + "1" + ")" * 5000 + "\n#endif\n",
        "#if " + " && ".join(f"defined(M{number})" for number in range(2000)) + "\n#endif\n",
        "#define A A B\n#define B B A\n#if A == B\n#endif\n",
        "int x = " + "(" * 20_000 + "1" + ")" * 20_000 + ";\n",
        "void f() " + "{" * 20_000 + "}" * 20_000 + "\n",
        "/* never closed\n#if 1\n",
        'const char* s = R"x(never closed\n',
        "#include\n#define\n#undef\n#if\n#elif\n#else\n#endif\n",
    ],
    ids=["parentheses", "conjunction", "recursion", "expression", "blocks", "comment", "raw", "empty"],
)
def test_a_file_made_to_hurt_is_survived(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(source)
    _check(tmp_path)


def test_a_slice_that_takes_too_long_falls_back_to_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "TIME_LIMIT_S", -1.0)
    facts = parse.parse("a.cpp", "int f() { return g(); }", "int f() { return g(); }")
    assert facts.problem == "took too long"
    assert facts.tokens == {"int", "f", "return", "g"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            ["#if A", "#else", "#elif B", "#endif", "{", "}", "f(", ")", "static int g() {", "<<<", '"', "\\"]
        ),
        max_size=30,
    )
)
def test_any_order_of_fragments_is_survived(tmp_path: Path, fragments: list[str]) -> None:
    (tmp_path / "a.cu").write_text("\n".join(fragments))
    run_checks(Matrix("matrix.yaml", (Lane(id="x", backend="cuda", vendors=("cuda",), macros={"A": "1"}),)), tmp_path)

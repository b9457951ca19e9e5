"""A run after a small change says what a run that knows nothing would say, and looks at little."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.checks import changes
from greenlane.checks.check import run_checks
from greenlane.checks.report import Report
from greenlane.checks.source.project import Project
from greenlane.matrix import load

PORT = Path(__file__).parent.parent / "fixtures" / "port"
Concerned = list[set[str] | None]


@pytest.fixture
def port(tmp_path: Path) -> Path:
    shutil.copytree(PORT, tmp_path / "port", ignore=shutil.ignore_patterns("variants"))
    return tmp_path / "port"


@pytest.fixture
def concerned(monkeypatch: pytest.MonkeyPatch) -> Concerned:
    """What each run decided to look at."""
    seen: Concerned = []
    real = changes.concerned

    def spy(project: Project) -> set[str] | None:
        seen.append(real(project))
        return seen[-1]

    monkeypatch.setattr(changes, "concerned", spy)
    return seen


def _check(root: Path) -> Report:
    return run_checks(load(root / "matrix.yaml"), root)


def _afresh(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Report:
    with monkeypatch.context() as context:
        context.setenv("XDG_CACHE_HOME", str(tmp_path / f"none-{random.random()}"))
        return _check(root)


def _edit(path: Path, change: Callable[[str], str]) -> None:
    old = path.read_text()
    assert change(old) != old
    path.write_text(change(old))


EDITS: dict[str, tuple[str, Callable[[str], str]]] = {
    "body": ("src/runner.cpp", lambda text: text + "\nint added(int value) { return value + 1; }\n"),
    "moved lines": ("src/runner.cpp", lambda text: "\n\n\n" + text),
    "unused": ("src/main.cpp", lambda text: text + "\nstatic int nobody(int value) { return value + 1; }\n"),
    "header": (
        "include/vt/runner.h",
        lambda text: text.replace("namespace vt {", "namespace vt {\nint extra(int);", 1),
    ),
    "arity in cuda": (
        "include/vt/cuda/combine_tokens.h",
        lambda text: text.replace("(", "(int surplus, ", 1),
    ),
    "guard": ("src/runner.cpp", lambda text: text.replace("#if ", "#if !", 1).replace("#ifdef ", "#ifndef ", 1)),
    "include": ("src/main.cpp", lambda text: "#include <cuda_runtime.h>\n" + text),
    "broken": ("src/main.cpp", lambda text: text + "\nint ) ( ;\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_run_after_a_change_says_what_a_fresh_run_says(
    edit: str, port: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check(port)
    file, change = EDITS[edit]
    _edit(port / file, change)
    assert _check(port) == _afresh(port, monkeypatch, tmp_path)
    shutil.copy(PORT / file, port / file)
    assert _check(port).findings == ()


def test_a_function_added_to_a_unit_concerns_the_unit_and_what_it_reads(port: Path, concerned: Concerned) -> None:
    _check(port)
    _edit(port / "src/main.cpp", EDITS["body"][1])
    _check(port)
    assert concerned[0] is None
    assert concerned[1] is not None and "src/main.cpp" in concerned[1]
    assert not [path for path in concerned[1] if path.endswith((".cpp", ".cu", ".hip")) and path != "src/main.cpp"]


def test_a_changed_header_concerns_whoever_reads_it(port: Path, concerned: Concerned) -> None:
    (port / "src/cpu/a.h").write_text("inline int once(int value) { return value; }\n")
    (port / "src/cpu/b.h").write_text('#include "a.h"\n')
    (port / "src/cpu/b.cpp").write_text('#include "b.h"\nint four() { return 4; }\n')
    _check(port)
    _edit(port / "src/cpu/a.h", lambda text: text.replace("return value;", "return value + 1;"))
    _check(port)
    assert concerned[1] == {"src/cpu/a.h", "src/cpu/b.h", "src/cpu/b.cpp"}


def test_a_changed_signature_concerns_the_files_that_name_it(port: Path, concerned: Concerned) -> None:
    (port / "src/cpu/a.cpp").write_text("int twice(int value) { return 2 * value; }\n")
    (port / "src/cpu/b.cpp").write_text("int twice(int value);\nint four() { return twice(2); }\n")
    _check(port)
    _edit(port / "src/cpu/a.cpp", lambda text: text.replace("int value", "int value, int more"))
    _check(port)
    assert concerned[1] == {"src/cpu/a.cpp", "src/cpu/b.cpp"}


def test_a_changed_directive_lets_nothing_stand(port: Path, concerned: Concerned) -> None:
    _check(port)
    _edit(port / "src/runner.cpp", EDITS["guard"][1])
    _check(port)
    assert concerned == [None, None]


@pytest.mark.parametrize("seed", range(6))
def test_any_line_taken_away_or_doubled_is_seen_alike(
    seed: int, port: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    files = sorted(path for path in port.rglob("*") if path.suffix in {".cpp", ".h", ".cu", ".hip"})
    _check(port)
    for _ in range(5):
        path = chance.choice(files)
        lines = path.read_text().split("\n")
        at = chance.randrange(len(lines))
        lines[at : at + 1] = [lines[at]] * chance.choice([0, 2])
        path.write_text("\n".join(lines))
        assert _check(port) == _afresh(port, monkeypatch, tmp_path), f"{path.name}:{at + 1}"

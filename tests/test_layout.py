"""The architecture, stated as tests: who may import whom, what the core may name, how big a file may be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A module may import only from rows above its own, and within its own folder.
LAYERS = (
    {"errors"},
    {"emulator", "matrix"},
    {"record"},
    {"checks", "gates", "executors", "images", "ledger"},
    {"lanes"},
    {"review"},
    {"report"},
    {"github"},
    {"cli"},
    {"nox", "__main__"},
)
MAX_FILE_LINES = 600
TOOL = sorted((ROOT / "greenlane").rglob("*.py"))
ENGINE = sorted((ROOT / "engine").rglob("*.py"))
CORE = sorted(path for suffix in ("h", "cpp", "cu") for path in (ROOT / "csrc").rglob(f"*.{suffix}"))
VENDOR_API = re.compile(r"\b(cuda|hip|nv|roc)[A-Z]\w+|__HIP\w*|__CUDA\w*|\bUSE_(CUDA|ROCM|HIP)\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def layer_of(module: str) -> int:
    rows = [row for row, names in enumerate(LAYERS) if module in names]
    assert rows, f"greenlane/{module} stands in no layer: add it to LAYERS and to the layout in docs/CONTRIBUTING.md"
    return rows[0]


def imported(path: Path, package: str) -> set[str]:
    """The modules right under `package` that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            _, _, rest = node.module.partition(".")
            found |= {rest.split(".")[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith(f"{package}.")}
    return found - {"__version__"}


@pytest.mark.parametrize("path", TOOL, ids=name)
def test_imports_point_down(path: Path) -> None:
    module = path.relative_to(ROOT / "greenlane").with_suffix("").parts[0]
    if module == "__init__":
        assert not imported(path, "greenlane")
        return
    for other in imported(path, "greenlane") - {module}:
        assert layer_of(other) < layer_of(module), f"{name(path)} must not import greenlane.{other}"


@pytest.mark.parametrize("path", sorted((ROOT / "greenlane" / "emulator").rglob("*.py")), ids=name)
def test_the_emulator_imports_errors_only(path: Path) -> None:
    assert imported(path, "greenlane") <= {"errors", "emulator"}


def test_the_tool_and_the_engine_never_import_each_other() -> None:
    assert [name(path) for path in TOOL if _names_package(path, "engine")] == []
    assert [name(path) for path in ENGINE if _names_package(path, "greenlane")] == []


def _names_package(path: Path, package: str) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == package:
            return True
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == package for alias in node.names):
            return True
    return False


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_names_no_vendor(path: Path) -> None:
    found = VENDOR_API.search(path.read_text())
    assert not found, f"{name(path)} names {found and found.group()}; vendor code belongs to backends/"


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_includes_no_backend(path: Path) -> None:
    for included in re.findall(r'#include\s+["<]([^">]+)', path.read_text()):
        assert not included.startswith("backends/"), f"{name(path)} includes {included}"


@pytest.mark.parametrize("path", TOOL + ENGINE, ids=name)
def test_a_file_stays_small(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= MAX_FILE_LINES, f"{name(path)} has {lines} lines; would two files with two names read better?"


@pytest.mark.parametrize("path", TOOL + ENGINE, ids=name)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{name(path)} lacks its opening line"

"""Loading: text, models, lanes, verification; every mistake of the stage that failed is raised at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from greenlane.matrix import content as text
from greenlane.matrix import document, sections, verify
from greenlane.matrix.document import Node
from greenlane.matrix.expand import Expander, Expansion
from greenlane.matrix.model import KnownRed, Matrix
from greenlane.matrix.problems import Problems
from greenlane.matrix.rows import uncollected
from greenlane.matrix.schema import MatrixFile
from greenlane.matrix.validation import validate_all


@dataclass(slots=True)
class Loaded:
    """A matrix and how it came about, for `explain`."""

    matrix: Matrix
    file: MatrixFile
    root: Node
    expansion: Expansion


def load_file(path: Path) -> Matrix:
    """The expanded matrix of a file."""
    return compile_matrix(text.read(path), str(path)).matrix


def compile_matrix(content: bytes, name: str) -> Loaded:
    """A matrix from its text; `name` is the file's name in messages. Raises `MatrixError` with every mistake."""
    with uncollected():
        return _compile(content, name)


def _compile(content: bytes, name: str) -> Loaded:
    problems = Problems()
    root = document.parse(content, name, problems)
    if isinstance(root.value, dict):
        for key in [key for key in root.value if key.startswith("x-")]:
            del root.value[key]
    checks = sections.checks(root, name, problems) if isinstance(root.value, dict) else {}
    file, incomplete = validate_all(MatrixFile, root, name, problems)
    if file is None:
        problems.raise_any()
        raise AssertionError("a refused file has a problem")
    expansion = Expander(file, root, name, problems).expand()
    verify.verify(file, root, name, expansion, problems)
    problems.raise_any(without_absences=incomplete)
    lanes = [expanded.lane for expanded in expansion.expanded]
    matrix = Matrix(
        file=name,
        lanes=tuple(lanes),
        constraints=file.constraints,
        checks=checks,
        known_red=tuple(KnownRed(**entry.model_dump(mode="json")) for entry in file.known_red),
        required=verify.required_ids(file, lanes),
        irrelevant=file.irrelevant,
        templates=file.templates,
        digest=hashlib.sha256(content).hexdigest(),
    )
    return Loaded(matrix, file, root, expansion)

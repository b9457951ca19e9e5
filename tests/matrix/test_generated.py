"""The schema and the reference are what the models say, and every key's example is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BaseModel, TypeAdapter

from greenlane.matrix import document, reference
from greenlane.matrix import jsonschema as matrix_schema
from greenlane.matrix.problems import Problems

ROOT = Path(__file__).parent.parent.parent
KEYS = [
    pytest.param(model, name, id=f"{model.__name__}.{name}")
    for _, model, base in reference.SECTIONS
    for name in model.model_fields
    if base is None or name not in base.model_fields
]


def plain(path: Path) -> Any:
    return document.parse(path.read_bytes(), path.name, Problems()).plain()


def test_the_schema_in_docs_is_fresh() -> None:
    stale = "stale: python -m greenlane schema > docs/matrix.schema.json"
    assert (ROOT / "docs" / "matrix.schema.json").read_text() == matrix_schema.text(), stale


def test_the_reference_in_docs_is_fresh() -> None:
    stale = "stale: python -m greenlane.matrix.reference > docs/matrix.md"
    assert (ROOT / "docs" / "matrix.md").read_text() == reference.text(), stale


def test_the_schema_is_a_json_schema_and_takes_the_matrices_of_this_repository() -> None:
    schema = json.loads(matrix_schema.text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for path in (ROOT / "matrix.yaml", *(ROOT / "examples").glob("*/matrix.yaml")):
        jsonschema.validate(plain(path), schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "change",
    [
        lambda matrix: matrix.update(backend={}),
        lambda matrix: matrix["backends"]["cpu"].update(macro={"A": 1}),
        lambda matrix: matrix["lanes"]["products"][0].pop("backend"),
        lambda matrix: matrix["gates"]["bench"].update(budgit=3),
        lambda matrix: matrix["checks"].update(of=[]),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(change: Any) -> None:
    matrix = plain(ROOT / "matrix.yaml")
    matrix.setdefault("checks", {})
    change(matrix)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(matrix, matrix_schema.schema(), jsonschema.Draft202012Validator)


@pytest.mark.parametrize(("model", "name"), KEYS)
def test_every_key_has_a_meaning_and_an_example_that_validates(model: type[BaseModel], name: str) -> None:
    field = model.model_fields[name]
    assert field.description
    example = field.json_schema_extra["x-example"]  # type: ignore[index,call-overload]
    node = document.parse(str(example).encode(), "example", Problems())
    assert list(node.value) == [name]
    adapter: TypeAdapter[Any] = TypeAdapter(
        Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    )
    adapter.validate_python(node.value[name].plain())


def test_the_reference_explains_every_key() -> None:
    text = (ROOT / "docs" / "matrix.md").read_text()
    for parameters in KEYS:
        assert f"### `{parameters.values[1]}`" in text

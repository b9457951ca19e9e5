"""`greenlane schema`: the JSON Schema of the matrix, from the models, for editors; kept in docs/matrix.schema.json."""

from __future__ import annotations

import argparse
import json
from typing import Any

from greenlane.matrix.checks import ChecksConfig
from greenlane.matrix.gates import GatesConfig
from greenlane.matrix.schema import MatrixFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{model}"


def command(arguments: argparse.Namespace) -> int:
    print(text(), end="")
    return 0


def text() -> str:
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


def schema() -> dict[str, Any]:
    """The whole schema. Keys of gates are never required: a layer may hold a part of a gate."""
    whole = MatrixFile.model_json_schema(ref_template=_REFERENCE)
    whole["$schema"] = DIALECT
    whole["title"] = "matrix.yaml of greenlane"
    whole["patternProperties"] = {"^x-": {"description": "free, for anchors"}}
    gates = GatesConfig.model_json_schema(ref_template=_REFERENCE)
    _graft(whole, "gates", _partial(gates))
    _graft(whole, "checks", ChecksConfig.model_json_schema(ref_template=_REFERENCE))
    return whole


def _graft(whole: dict[str, Any], name: str, section: dict[str, Any]) -> None:
    """Puts a section's schema wherever the key stands, with its definitions under names of their own."""
    definitions = section.pop("$defs", {})
    renamed = {f"{name}.{model}": definition for model, definition in definitions.items()}
    grafted = {**renamed, name: section}
    for key, definition in grafted.items():
        whole["$defs"][key] = _renamed(definition, name)
    for holder in (whole, *whole["$defs"].values()):
        place = holder.get("properties", {}).get(name)
        if place is not None and holder is not whole["$defs"][name]:
            kept = {key: place[key] for key in ("description", "x-example") if key in place}
            holder["properties"][name] = {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}], **kept}


def _renamed(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, name) for key, inner in value.items()} | (
            {"$ref": value["$ref"].replace("#/$defs/", f"#/$defs/{name}.")}
            if isinstance(value.get("$ref"), str)
            else {}
        )
    return [_renamed(inner, name) for inner in value] if isinstance(value, list) else value


def _partial(value: Any) -> Any:
    """Without `required`, and with null for every property: null takes away what an earlier layer set."""
    if isinstance(value, list):
        return [_partial(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    dropped = ("required", "minProperties")
    partial = {key: _partial(inner) for key, inner in value.items() if key not in dropped or isinstance(inner, dict)}
    for holder in ("properties", "patternProperties"):
        if isinstance(partial.get(holder), dict):
            partial[holder] = {key: _or_null(inner) for key, inner in partial[holder].items()}
    if isinstance(partial.get("additionalProperties"), dict):
        partial["additionalProperties"] = _or_null(partial["additionalProperties"])
    if partial.get("type") == "number":
        partial["type"] = ["number", "string"]  # 1%, 20m
    return partial


def _or_null(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}

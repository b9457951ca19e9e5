"""pydantic's errors in the words of the file: where, which key, and the nearest right one."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from greenlane.matrix.document import Integer, Node, Real
from greenlane.matrix.model import Mark
from greenlane.matrix.problems import Problems, nearest

M = TypeVar("M", bound=BaseModel)
Location = tuple[int | str, ...]
KEY = "[key]"  # how pydantic marks an error in a key of a mapping


def validate(model: type[M], node: Node, file: str, problems: Problems) -> M | None:
    """The model of a node's values, or None with every mistake added to the problems."""
    try:
        return model.model_validate(node.plain())
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            location = detail["loc"]
            at_key = detail["type"] == "extra_forbidden" or location[-1:] == (KEY,)
            problems.add(mark_of(node, location, file, at_key=at_key), message_of(model, dict(detail), location))
        return None


def mark_of(node: Node, location: Location, file: str, *, at_key: bool = False) -> Mark:
    """Where the value at a location was written, or its key; the innermost that was written at all."""
    line, column = node.line, node.column
    for step in location:
        value = node.value
        if isinstance(value, dict) and step in value:
            line, column = node.keys[str(step)]
            node = value[step]
            if not at_key:
                line, column = node.line, node.column
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            node = value[step]
            line, column = node.line, node.column
    return Mark(file, line, column)


def message_of(model: type[BaseModel], detail: Mapping[str, Any], location: Location) -> str:
    """One line about one error."""
    name = next((str(step) for step in reversed(location) if isinstance(step, str) and step != KEY), "")
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "extra_forbidden":
        return f"unknown key {name!r}{nearest(name, fields_at(model, location[:-1]))}"
    if kind == "missing":
        return f"the key {name!r} is missing"
    if kind in ("literal_error", "enum"):
        expected = str(context.get("expected", ""))
        known = [word.strip("'\" ") for word in expected.replace(" or ", ",").split(",")]
        subject = f"{name!r}" if location[-1] == KEY else f"{name}: {detail['input']!r}"
        return f"{subject} is not one of {', '.join(known)}{nearest(str(detail['input']), known)}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[:1].lower()}{message[1:]}" if name else message


def fields_at(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that the model at a location understands."""
    annotations: list[Any] = [model]
    for step in location:
        annotations = [inner for annotation in annotations for inner in _step(annotation, step)]
    return [field for annotation in annotations for field in _fields(annotation)]


def _step(annotation: Any, step: int | str) -> Iterator[Any]:
    for part in _unwrapped(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if isinstance(part, type) and issubclass(part, BaseModel):
            if step in part.model_fields:
                yield from _unwrapped(part.model_fields[str(step)].annotation)
        elif origin is not None and arguments:
            yield from _unwrapped(arguments[-1] if issubclass(origin, Mapping) else arguments[0])


def _unwrapped(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _unwrapped(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from _unwrapped(part)
    else:
        yield annotation


def _fields(annotation: Any) -> list[str]:
    for part in _unwrapped(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return [field.alias or name for name, field in part.model_fields.items()]
    return []


def unread(value: Any) -> Any:
    """Plain values without the memory of how they were written."""
    if isinstance(value, dict):
        return {str(key): unread(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [unread(inner) for inner in value]
    if isinstance(value, Integer):
        return int(value)
    return float(value) if isinstance(value, Real) else value

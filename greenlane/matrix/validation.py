"""pydantic's errors in the words of the file: where, which key, and the nearest right one."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from greenlane.errors import MatrixError
from greenlane.matrix.document import Integer, Node, Real
from greenlane.matrix.model import Mark
from greenlane.matrix.problems import Problems, nearest

M = TypeVar("M", bound=BaseModel)
Location = tuple[int | str, ...]
MAX_PASSES = 6
MAX_ERRORS = 5000
WANTED = {
    "bool": "true or false is wanted",
    "int": "a whole number is wanted",
    "float": "a number is wanted",
    "string_type": "a word is wanted",
    "string_too_short": "it must not be empty",
    "dict_type": "a mapping is wanted",
    "model_type": "a mapping is wanted",
    "tuple_type": "a list is wanted",
    "list_type": "a list is wanted",
    "too_short": "it must not be empty",
}  # by the beginning of pydantic's kind of error
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


def validate_all(model: type[M], node: Node, file: str, problems: Problems) -> tuple[M | None, bool]:
    """Like `validate`, but takes away what is wrong and goes on, so that the rest of the file is looked at too.

    Changes the node. The flag says that lanes may be lacking in what is left.
    """
    touched: set[int] = set()  # ids of nodes that lost something
    incomplete = False
    for _ in range(MAX_PASSES):
        try:
            return model.model_validate(node.plain()), incomplete
        except ValidationError as error:
            if error.error_count() > MAX_ERRORS:
                raise MatrixError(
                    f"{file}:1:1: more than {MAX_ERRORS} mistakes; is this a matrix of greenlane?"
                ) from None
            details: list[dict[str, Any]] = [dict(detail) for detail in error.errors(include_url=False)]
        for detail in details:
            if not _follows(detail, node, touched):
                at_key = detail["type"] == "extra_forbidden" or detail["loc"][-1:] == (KEY,)
                mark = mark_of(node, detail["loc"], file, at_key=at_key)
                problems.add(mark, "" if problems.full else message_of(model, detail, detail["loc"]))
        for detail in sorted(details, key=_last_first, reverse=True):
            gone = _prune(node, detail["loc"], touched, missing=detail["type"] == "missing")
            if gone == ():
                return None, True
            incomplete |= _makes_lanes(gone)
    return None, True


def _last_first(detail: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Sorts by location, so that taking a list's item away never moves one that is still to go."""
    return [(step, "") if isinstance(step, int) else (-1, step) for step in detail["loc"]]


def _follows(detail: Mapping[str, Any], node: Node, touched: set[int]) -> bool:
    """Whether only what was taken away makes this wrong."""
    if detail["type"] not in ("missing", "value_error"):
        return False
    location = detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]
    for step in location:
        if not _has(node, step):
            return False
        node = node.value[step]
    return id(node) in touched


def _makes_lanes(gone: Location) -> bool:
    entries = (("lanes", "products"), ("lanes", "include"))
    return gone[:2] in entries or (gone[:1] == ("backends",) and len(gone) == 2)


def _prune(node: Node, location: Location, touched: set[int], *, missing: bool) -> Location:
    """Takes the value at a location out of the tree, or the entry that lacks it; says what went."""
    wanted = location[:-1] if missing or location[-1:] == (KEY,) else location
    parent = node
    for depth, step in enumerate(wanted, start=1):
        if not _has(parent, step):
            return wanted[: depth - 1] or (str(step),)
        touched.add(id(parent))
        child = parent.value[step]
        if missing and depth == len(wanted) and location[-1] == "why":
            child.value["why"] = Node("(missing)", child.line, child.column)
            child.keys["why"] = (child.line, child.column)
            return location
        if depth == len(wanted) or not _has(child, wanted[depth]):
            del parent.value[step]
            return wanted[:depth]
        parent = child
    return ()


def _has(node: Node, step: int | str) -> bool:
    if isinstance(node.value, dict):
        return step in node.value
    return isinstance(node.value, list) and isinstance(step, int) and step < len(node.value)


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
    message = next((text for start, text in WANTED.items() if kind.startswith(start)), None)
    message = message or str(detail["msg"]).removeprefix("Value error, ")
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

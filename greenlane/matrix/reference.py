"""docs/matrix.md, from the models: `python -m greenlane.matrix.reference > docs/matrix.md`."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from greenlane.matrix import schema, values
from greenlane.matrix.select import KEYS
from greenlane.matrix.targets import targets
from greenlane.matrix.verify import PLACEHOLDERS

SECTIONS: tuple[tuple[str, type[BaseModel], type[BaseModel] | None], ...] = (
    ("The file", schema.MatrixFile, None),
    ("Settings: what any layer may set", schema.Settings, None),
    ("`backends`", schema.Backend, schema.Settings),
    ("`backends.*.archs`", schema.Arch, schema.Settings),
    ("`lanes`", schema.Lanes, None),
    ("`lanes.products`", schema.Product, schema.Settings),
    ("`lanes.include`", schema.Include, schema.Settings),
    ("`lanes.exclude`", schema.Exclude, None),
    ("`lanes.overrides`", schema.Override, schema.Settings),
    ("`known_red`", schema.KnownRedEntry, None),
)
_VALIDATED: dict[Any, str] = {values.seconds: "duration", values.size: "size"}

HEAD = """\
# matrix.yaml

Generated from the models by `python -m greenlane.matrix.reference`; a test fails when it is stale. `greenlane schema`
prints the JSON Schema (docs/matrix.schema.json); an editor with a YAML language server completes keys with

```yaml
# yaml-language-server: $schema=docs/matrix.schema.json
```

A matrix is data. Every mistake is reported at once as `file:line:column: message`, exit code 2; nothing is ignored in
silence: unknown and duplicate keys, globs that match nothing, overrides that change nothing and entries that no lane
uses are mistakes.

## How a lane comes about

A lane's id is `<backend>[-<arch>][-<toolkit>][-<variant>]`. The backend's default toolkit is not in the id, so adding a
toolkit, an arch or a lane never renames another lane. Layers apply in this order, later ones win:

1. `stages` and `gates` of the file, 2. `defaults`, 3. the backend, 4. its toolkit, 5. its arch, 6. its variant,
7. the product or include that made the lane, 8. `lanes.overrides` in file order.

Mappings merge key by key, gates to any depth, and `null` removes a key; tags add up; everything else is replaced.
Exclusions apply to products; includes come after them. `greenlane explain LANE` prints each value with its place.

YAML is read by the 1.2 core schema: `on`, `no` and dates stay words; a version keeps its spelling, 7.10 is not 7.1.
Anchors, aliases and merge keys work. Limits: 4 MiB, 150,000 values with aliases expanded, 40 levels, 20,000 lanes.
"""

TAIL = """\
## Commands

`stages` hold shell commands by stage: `image` (the set-up of the host executor; images hold it already), `configure`,
`build`, `test`. A stage without commands and without a gate does not exist in the lane. A lane for which nobody writes
`stages` is built as a scikit-build project: `{scikit_build}`.

Placeholders in commands and `env`: {placeholders}. `{{arch}}`, `{{archs}}` and `{{toolkit}}` also stand in `macros`,
`defines`, `sources`, `include_dirs` and `runs_on`. An unknown placeholder is a mistake; `${{name}}` is the shell's.

## `gates` and `checks`

`gates` are validated per lane after merging; docs/gates.md explains them. `checks` are explained in docs/checks.md.

## Constraints

Formulas over macros that are defined: `!` `&&` `||` `->` `<->`, or `not` `and` `or` `implies`, parentheses,
`defined(X)`, `at_most_one(A, B)`, `exactly_one(A, B)`. A lane whose macros violate one is a mistake.

## `--select`

Words joined by `and`, `or` (or a comma), `not` and parentheses. A bare word is a glob on ids and tags; `key:glob` asks
one of {select_keys}. A word that matches no lane is a mistake.

```
greenlane list --select 'backend:rocm and not arch:gfx9*'
greenlane list --select 'cpu, cuda-*'
```

## `--changed-since`

A changed file selects a lane when it matches the lane's `paths`, is one of its `sources` or included by them, is named
by its settings (Dockerfile, prompts), or when nobody can tell: no rule of any lane covers it, an include is computed, a
lane names no sources. A changed matrix selects the lanes whose digest changed. Files under `irrelevant` select nothing.

## Known targets

The architectures below are known with the first compiler version that builds for them; a backend declares others in
`archs` by `family` (and `wavefront`).

| target | vendor | wavefront | family | generation | first compiler |
|---|---|---|---|---|---|
{targets}
"""


def text() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, model, base in SECTIONS:
        parts.append("\n".join(_section(title, model, base)))
    parts.append(_tail())
    return "\n".join(parts)


def _tail() -> str:
    from greenlane.matrix.expand import SCIKIT_BUILD

    rows = [
        f"| {target.name} | {target.vendor} | {target.wavefront} | {target.family} | {target.generation} | "
        + ", ".join(f"{compiler} {version}" for compiler, version in target.first.items())
        + " |"
        for target in targets().values()
    ]
    return TAIL.format(
        scikit_build=SCIKIT_BUILD["build"][0],
        placeholders=", ".join(f"`{{{name}}}`" for name in PLACEHOLDERS),
        select_keys=", ".join(f"`{key}`" for key in KEYS),
        targets="\n".join(rows),
    )


def _section(title: str, model: type[BaseModel], base: type[BaseModel] | None) -> Iterator[str]:
    yield f"## {title}\n"
    yield " ".join((model.__doc__ or "").split())
    own = {name: field for name, field in model.model_fields.items() if base is None or name not in base.model_fields}
    if base is not None:
        yield "Beside the settings of every layer:"
    yield ""
    for name, field in own.items():
        yield from _key(name, field)


def _key(name: str, field: FieldInfo) -> Iterator[str]:
    required = ", required" if field.is_required() else ""
    yield f"### `{name}`\n"
    yield f"{_capital(field.description or '')}. *{_kind(field.annotation)}{required}*\n"
    extra = field.json_schema_extra
    example = extra.get("x-example") if isinstance(extra, dict) else None
    yield f"```yaml\n{example}\n```\n"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _kind(annotation: Any) -> str:
    """What a value looks like, in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        kinds = [_VALIDATED[one.func] for one in arguments[1:] if getattr(one, "func", None) in _VALIDATED]
        return kinds[0] if kinds else _kind(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(part) for part in arguments if part is not type(None)))
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"{_kind(arguments[0])}, or a list of them" if _kind(arguments[0]) != "entry" else "list of entries"
    if origin is not None and issubclass(origin, Mapping):
        return f"mapping from {_kind(arguments[0])} to {_kind(arguments[1])}"
    return _plain_kind(annotation)


def _plain_kind(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "entry"
    return {str: "word", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "value")


if __name__ == "__main__":
    sys.stdout.write(text())

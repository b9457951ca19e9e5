"""The sections whose models stand in modules of their own: `gates:` per lane after merging, `checks:` once.

Both are heavy to import, so a matrix that has no such section loads neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from greenlane.matrix.document import Node
from greenlane.matrix.layers import Draft
from greenlane.matrix.model import Mark
from greenlane.matrix.problems import Problems
from greenlane.matrix.validation import mark_of, message_of, unread, validate


class Gates:
    """Validates merged gates; lanes that share them are validated once."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self._valid: dict[str, Mapping[str, Any]] = {}

    def validated(self, draft: Draft) -> Mapping[str, Any]:
        """Plain data that `GatesConfig` accepts; empty for a lane without gates."""
        raw = unread(draft.values.get("gates") or {})
        if not raw:
            return {}
        key = json.dumps(raw, sort_keys=True, default=str)
        if key not in self._valid:
            self._valid[key] = self._validate(raw, draft)
        return self._valid[key]

    def _validate(self, raw: Mapping[str, Any], draft: Draft) -> Mapping[str, Any]:
        from greenlane.matrix.gates import GatesConfig

        try:
            return GatesConfig.model_validate(raw).model_dump(mode="json", exclude_none=True)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                at_key = detail["type"] == "extra_forbidden"
                mark = self._mark(draft, detail["loc"], at_key=at_key)
                self.problems.add(mark, message_of(GatesConfig, dict(detail), detail["loc"]))
            return {}

    def _mark(self, draft: Draft, location: tuple[int | str, ...], *, at_key: bool) -> Mark:
        """The innermost written part of a location: a path that layers wrote, then a step inside its node."""
        for length in range(len(location), -1, -1):
            path = ".".join(("gates", *(str(step) for step in location[:length])))
            if path in draft.origins:
                node, _ = draft.origins[path]
                if at_key and length == len(location) and length:
                    return self._key(draft, location) or mark_of(node, (), self.file)
                return mark_of(node, location[length:], self.file, at_key=at_key)
        return Mark(self.file, 1, 1)

    def _key(self, draft: Draft, location: tuple[int | str, ...]) -> Mark | None:
        parent = ".".join(("gates", *(str(step) for step in location[:-1])))
        node: Node | None = draft.origins.get(parent, (None, ""))[0]
        key = str(location[-1])
        if node is None or key not in node.keys:
            return None
        return Mark(self.file, *node.keys[key])


def checks(root: Node, file: str, problems: Problems) -> Mapping[str, Any]:
    """The validated `checks` section as plain data."""
    node = root.value.get("checks")
    if node is None:
        return Defaults()
    from greenlane.matrix.checks import ChecksConfig

    valid = validate(ChecksConfig, node, file, problems)
    return valid.model_dump(mode="json") if valid else {}


class Defaults(Mapping[str, Any]):
    """The `checks` section of a matrix without one, made when it is first looked at."""

    @cached_property
    def _section(self) -> dict[str, Any]:
        from greenlane.matrix.checks import ChecksConfig

        return ChecksConfig.model_validate({}).model_dump(mode="json")

    def __getitem__(self, name: str) -> Any:
        return self._section[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._section)

    def __len__(self) -> int:
        return len(self._section)

    def __repr__(self) -> str:
        return repr(self._section)  # as the same section written out: caches go by it

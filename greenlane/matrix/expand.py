"""From the file's models to lanes: pure, in a fixed order, each value with the node that wrote it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from re import compile as compile_regex
from typing import Any

from greenlane.matrix.cells import Axes, Cell, Excluded, compile_targets, declared
from greenlane.matrix.document import Node
from greenlane.matrix.layers import Draft, Layer, layer
from greenlane.matrix.model import Image, Lane, Limits, Mark
from greenlane.matrix.problems import Problems, nearest
from greenlane.matrix.schema import Backend, MatrixFile
from greenlane.matrix.sections import Gates

SCIKIT_BUILD = {"build": ('CMAKE_ARGS="{cmake_defines}" {python} -m pip install --no-deps --target {prefix} {source}',)}
LISTS = ("vendors", "sources", "include_dirs", "passthrough", "runs_on", "paths", "setup_inputs", "model")
NOT_IN_DIGEST = frozenset({"digest", "marks", "tags", "runs_on"})  # they decide where and when, not what


@dataclass(slots=True)
class Expanded:
    """A lane's cell, its settings and its final form."""

    cell: Cell
    draft: Draft
    lane: Lane


@dataclass(slots=True)
class Expansion:
    expanded: list[Expanded]
    excluded: list[Excluded]


class Expander:
    """Applies the layers of the file in order: defaults, backend, toolkit, arch, variant, entry, overrides."""

    def __init__(self, file: MatrixFile, root: Node, name: str, problems: Problems) -> None:
        self.file = file
        self.root = root
        self.name = name
        self.problems = problems
        self._layers: dict[tuple[Any, ...], Layer] = {}
        self._gates = Gates(name, problems)

    def expand(self) -> Expansion:
        cells, excluded = Axes(self.file, self.root, self.name, self.problems).cells()
        drafts = [self._draft(cell) for cell in cells]
        self._override(cells, drafts)
        shared = self._shared()
        expanded = [
            Expanded(cell, draft, self._lane(cell, draft, shared)) for cell, draft in zip(cells, drafts, strict=True)
        ]
        return Expansion(expanded, excluded)

    def _draft(self, cell: Cell) -> Draft:
        draft = Draft({"tags": (cell.backend,)})
        draft.apply(self._layer(("stages",)))
        draft.apply(self._layer(("defaults",)))
        for path in _paths(cell):
            draft.apply(self._layer(path))
        draft.apply(self._entry_layer(cell))
        if "stages" not in draft.values:
            draft.values["stages"] = dict(SCIKIT_BUILD)
        return draft

    def _layer(self, path: tuple[str, ...]) -> Layer:
        """The layer at a place of the file, made once."""
        made = self._layers.get(path)
        if made is None:
            made = self._layers[path] = self._make_layer(path)
        return made

    def _make_layer(self, path: tuple[str, ...]) -> Layer:
        if path == ("stages",):
            values = {name: getattr(self.file, name) for name in ("stages", "gates") if name in self.root.value}
            return Layer("the file", {name: value for name, value in values.items() if value}, self.root)
        if path == ("defaults",):
            node = self.root.value.get("defaults")
            return layer("defaults", self.file.defaults if node else None, node or self.root)  # type: ignore[arg-type]
        backend: Any = self.file.backends[path[0]]
        node = self.root.value["backends"].value[path[0]]
        if len(path) == 1:
            return layer(f"backend {path[0]}", backend, node)
        entries = getattr(backend, path[1], None) or {}
        if path[2] not in entries:
            return Layer(path[2], {}, node)
        return layer(f"{path[1][:-1]} {path[2]}", entries[path[2]], node.value[path[1]].value[path[2]])

    def _entry_layer(self, cell: Cell) -> Layer:
        made = self._layers.get((id(cell.entry),))
        if made is None:
            made = self._layers[(id(cell.entry),)] = layer(cell.label, cell.entry, cell.node)
        return made

    def _override(self, cells: list[Cell], drafts: list[Draft]) -> None:
        ids = [cell.id for cell in cells]
        for index, override in enumerate(self.file.lanes.overrides):
            node = self.root.value["lanes"].value["overrides"].value[index]
            matched: dict[int, None] = {}
            for glob in override.lanes:
                matched.update(dict.fromkeys(self._matched(glob, ids, node)))
            self._apply_override(layer(f"override {index + 1}", override, node), [drafts[at] for at in matched])

    def _matched(self, glob: str, ids: list[str], node: Node) -> list[int]:
        matches = compile_regex(translate(glob)).match
        found = [at for at, lane in enumerate(ids) if matches(lane)]
        if not found:
            self.problems.add(mark_of_word(self.name, node.value["lanes"], glob), no_lane(glob, ids), absence=True)
        return found

    def _apply_override(self, changes: Layer, drafts: list[Draft]) -> None:
        if not drafts:
            return
        changed = {name for draft in drafts for name in draft.apply(changes)}
        for name in changes.values:
            if name not in changed:
                line, column = changes.node.keys[name]
                self.problems.add(
                    Mark(self.name, line, column), f"{name!r} of this override changes nothing: every lane has it so"
                )
        if not changes.values:
            self.problems.add(Mark(self.name, changes.node.line, changes.node.column), "this override sets nothing")

    def _shared(self) -> str:
        """What every lane depends on beside its own settings, for the digests."""
        return json.dumps([self.file.constraints, self.file.checks], sort_keys=True, default=str)

    def _lane(self, cell: Cell, draft: Draft, shared: str) -> Lane:
        backend = self.file.backends[cell.backend] or Backend()
        fields = {**_axes(cell, backend, draft), **_settings(cell, draft.values), "gates": self._gates.validated(draft)}
        for name in ("defines", "macros", "sources", "include_dirs", "runs_on"):
            fields[name] = _filled(fields[name], fields)
        return Lane(digest=_digest(fields, shared), marks=Marks(self.name, draft.origins, cell.node), **fields)


class Marks(Mapping[str, Mark]):
    """Dotted path -> mark, made when asked for: most marks never are."""

    def __init__(self, file: str, origins: Mapping[str, tuple[Node, str]], entry: Node) -> None:
        self._file = file
        self._origins = {**origins, "id": (entry, "")}

    def __getitem__(self, path: str) -> Mark:
        node = self._origins[path][0]
        return Mark(self._file, node.line, node.column)

    def __iter__(self) -> Any:
        return iter(self._origins)

    def __len__(self) -> int:
        return len(self._origins)


def mark_of_word(file: str, node: Node, word: str) -> Mark:
    """Where a word of a list, or the list's only word, was written."""
    for item in node.value if isinstance(node.value, list) else [node]:
        if str(getattr(item.value, "text", item.value)) == word:
            return Mark(file, item.line, item.column)
    return Mark(file, node.line, node.column)


def no_lane(glob: str, ids: list[str]) -> str:
    return f"{glob!r} matches no lane{nearest(glob, ids)}"


def _paths(cell: Cell) -> list[tuple[str, ...]]:
    axes = (("toolkits", cell.toolkit), ("archs", cell.arch), ("variants", cell.variant))
    return [(cell.backend,), *((cell.backend, kind, name) for kind, name in axes if name)]


def _axes(cell: Cell, backend: Backend, draft: Draft) -> dict[str, Any]:
    _, arch, _ = declared(backend, cell)
    names, target = compile_targets(cell.arch, arch)
    compiler = draft.values.get("compiler")
    version = draft.values.get("compiler_version")
    if version is None and compiler in ("nvcc", "hipcc"):
        version = cell.toolkit
    return {
        "id": cell.id,
        "backend": cell.backend,
        "toolkit": cell.toolkit,
        "arch": cell.arch,
        "archs": names,
        "variant": cell.variant,
        "compiler": compiler,
        "compiler_version": version,
        "wavefront": (arch.wavefront if arch else None) or (target.wavefront if target else None),
        "family": (arch.family if arch else None) or (target.family if target else None),
    }


def _settings(cell: Cell, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: values.get(name) for name in ("row", "device", "hosted_only")},
        **{name: values.get(name) or () for name in LISTS},
        **{name: dict(values.get(name) or {}) for name in ("macros", "defines", "env")},
        "tags": values["tags"],
        "require": tuple(evidence.value for evidence in values.get("require") or ()),
        "executor": values.get("executor") or "auto",
        "emulate": bool(values.get("emulate")),
        "stages": {name: commands for name, commands in (values.get("stages") or {}).items() if commands},
        "image": _image(values),
        "limits": _limits(values),
    }


def _image(values: Mapping[str, Any]) -> Image | None:
    dockerfile = values.get("dockerfile")
    return Image(dockerfile, dict(values.get("build_args") or {}), values.get("target")) if dockerfile else None


def _limits(values: Mapping[str, Any]) -> Limits:
    return Limits(
        timeout_s=values.get("timeout") or Limits().timeout_s,
        stage_timeout_s=dict(values.get("stage_timeouts") or {}),
        memory_bytes=values.get("memory"),
        pids=values.get("pids"),
    )


def _filled(value: Any, fields: Mapping[str, Any]) -> Any:
    """`{arch}`, `{archs}` and `{toolkit}` replaced: one setting serves all lanes of an axis."""
    if isinstance(value, dict):
        return {key: _filled(inner, fields) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_filled(inner, fields) for inner in value)
    if not isinstance(value, str) or "{" not in value:
        return value
    filled = value.replace("{archs}", ";".join(fields["archs"]))
    return filled.replace("{arch}", fields["arch"] or "").replace("{toolkit}", fields["toolkit"] or "")


def _digest(fields: Mapping[str, Any], shared: str) -> str:
    content = {name: value for name, value in fields.items() if name not in NOT_IN_DIGEST}
    return hashlib.sha256((json.dumps(content, sort_keys=True, default=_plain) + shared).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Image):
        return [value.dockerfile, dict(value.args), value.target]
    if isinstance(value, Limits):
        return [value.timeout_s, dict(value.stage_timeout_s), value.memory_bytes, value.pids]
    raise TypeError(f"{type(value).__name__} has no place in a digest")

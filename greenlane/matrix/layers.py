"""Layers of settings and how they merge: later layers win, and every value remembers the node that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from greenlane.matrix.document import Node
from greenlane.matrix.schema import Settings

MAPPINGS = frozenset({"macros", "defines", "env", "build_args", "stage_timeouts", "stages", "gates"})
_SETTINGS = frozenset(Settings.model_fields)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place in the file sets."""

    label: str  # "backend rocm", "override 2"
    values: Mapping[str, Any]
    node: Node


@dataclass(slots=True)
class Draft:
    """A lane's settings while layers are applied; keys of both mappings are those of the file."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, tuple[Node, str]] = field(default_factory=dict)  # dotted path -> node, label of its layer

    def apply(self, layer: Layer) -> set[str]:
        """Merges a layer; returns the top keys that it changed."""
        return {name for name, value in layer.values.items() if self._set(layer, name, value)}

    def _set(self, layer: Layer, name: str, value: Any) -> bool:
        node = layer.node.value[name]
        before = self.values.get(name)
        if name in MAPPINGS and value:
            self.values[name] = self._merged(name, before or {}, value, node, layer.label)
        elif name == "tags":
            self.values[name] = tuple(dict.fromkeys((*(before or ()), *(value or ()))))
        else:
            self.values[name] = value
        self.origins[name] = (node, layer.label)
        return bool(self.values[name] != before)

    def _merged(
        self, path: str, old: Mapping[str, Any], new: Mapping[str, Any], node: Node, label: str
    ) -> dict[str, Any]:
        merged = dict(old)
        for raw, value in new.items():
            key = str(raw)
            inner = node.value[key]
            self.origins[f"{path}.{key}"] = (inner, label)
            if value is None:
                merged.pop(key, None)
            elif isinstance(value, Mapping):
                below = merged.get(key)
                merged[key] = self._merged(
                    f"{path}.{key}", below if isinstance(below, Mapping) else {}, value, inner, label
                )
            else:
                merged[key] = value
        return merged


def layer(label: str, model: Settings | None, node: Node) -> Layer:
    """The settings that a model of the schema really wrote."""
    if model is None:
        return Layer(label, {}, node)
    return Layer(label, {name: getattr(model, name) for name in model.model_fields_set & _SETTINGS}, node)

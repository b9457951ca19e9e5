"""The axes: which combinations of backend, toolkit, arch and variant exist, and from which entry of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from typing import Any

from greenlane.errors import MatrixError
from greenlane.matrix.document import Node
from greenlane.matrix.model import Mark
from greenlane.matrix.problems import Problems, nearest
from greenlane.matrix.schema import Arch, Backend, Exclude, Include, MatrixFile, Product, Toolkit, Variant
from greenlane.matrix.targets import Target, targets

MAX_LANES = 20_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination, and the entry that asks for it."""

    backend: str
    toolkit: str | None
    arch: str | None
    variant: str | None
    default_toolkit: str | None
    entry: Product | Include
    node: Node  # of the entry
    label: str

    @property
    def id(self) -> str:
        toolkit = None if self.toolkit == self.default_toolkit else self.toolkit
        return "-".join(part for part in (self.backend, self.arch, toolkit, self.variant) if part)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A combination that an exclusion took away."""

    id: str
    why: str
    mark: Mark


class Axes:
    """Reads the `lanes` section against the backends."""

    def __init__(self, file: MatrixFile, root: Node, name: str, problems: Problems) -> None:
        self.file = file
        self.root = root
        self.name = name
        self.problems = problems
        self.used: set[tuple[str, ...]] = set()  # (backend,), (backend, "archs", name)

    def cells(self) -> tuple[list[Cell], list[Excluded]]:
        """Cells in a fixed order, whatever the order of the includes; each id once."""
        lanes, nodes = self.file.lanes, self.root.value["lanes"].value
        wanted: list[Cell] = []
        for index, wide in enumerate(lanes.products):
            wanted.extend(self._product(wide, nodes, index))
            if len(wanted) > MAX_LANES:
                raise MatrixError(f"{self.mark(nodes['products'], index)}: more than {MAX_LANES} lanes")
        kept, excluded = self._exclude(wanted, lanes.exclude, nodes.get("exclude"))
        for index, entry in enumerate(lanes.include):
            kept.extend(self._include(entry, nodes["include"].value[index], index))
        self._unused()
        order = {name: index for index, name in enumerate(self.file.backends)}
        kept.sort(key=lambda cell: (order[cell.backend], cell.id))
        return self._unique(kept), excluded

    def mark(self, node: Node, *path: Any) -> Mark:
        for step in path:
            node = node.value[step]
        return Mark(self.name, node.line, node.column)

    def _product(self, entry: Product, nodes: Mapping[str, Node], index: int) -> Iterator[Cell]:
        node = nodes["products"].value[index]
        backend = self._backend(entry.backend, node)
        if backend is None:
            return
        default = self._default_toolkit(entry.backend, backend)
        toolkits = entry.toolkit if entry.toolkit is not None else (default,)
        axes = [
            [name for name in dict.fromkeys(values) if self._known(kind, name, entry.backend, backend, node)]
            for kind, values in (
                ("toolkit", toolkits),
                ("arch", entry.arch or (None,)),
                ("variant", entry.variant or (None,)),
            )
        ]
        if prod(len(axis) for axis in axes) > MAX_LANES:
            self.problems.add(self.mark(node), f"this product makes more than {MAX_LANES} lanes")
            return
        for toolkit, arch, variant in product(*axes):
            yield Cell(entry.backend, toolkit, arch, variant, default, entry, node, f"product {index + 1}")

    def _include(self, entry: Include, node: Node, index: int) -> Iterator[Cell]:
        backend = self._backend(entry.backend, node)
        if backend is None:
            return
        default = self._default_toolkit(entry.backend, backend)
        toolkit = entry.toolkit or default
        axes = (("toolkit", toolkit), ("arch", entry.arch), ("variant", entry.variant))
        known = [self._known(kind, name, entry.backend, backend, node) for kind, name in axes]  # each says its mistake
        if all(known):
            yield Cell(entry.backend, toolkit, entry.arch, entry.variant, default, entry, node, f"include {index + 1}")

    def _backend(self, name: str, node: Node) -> Backend | None:
        if name not in self.file.backends:
            hint = nearest(name, self.file.backends)
            self.problems.add(self.mark(node, "backend"), f"no backend {name!r}{hint}")
            return None
        self.used.add((name,))
        return self.file.backends[name] or Backend()

    def _default_toolkit(self, name: str, backend: Backend) -> str | None:
        if backend.toolkit is None:
            return next(iter(backend.toolkits)) if len(backend.toolkits) == 1 else None
        return backend.toolkit

    def _known(self, kind: str, name: str | None, backend_name: str, backend: Backend, node: Node) -> bool:
        """Whether the name on an axis means something; if not, says so at the name."""
        if name is None:
            return True
        entries: Mapping[str, Any] = getattr(backend, f"{kind}s")
        self.used.add((backend_name, f"{kind}s", name))
        if name in entries or (kind == "arch" and name in targets()):
            return True
        known = [*entries, *(targets() if kind == "arch" else ())]
        where = self._mark_on_axis(node, kind, name)
        if kind == "arch":
            text = f"no compiler and no entry of backend {backend_name!r} knows the arch {name!r}"
        else:
            text = f"backend {backend_name!r} declares no {kind} {name!r}"
        self.problems.add(where, text + nearest(name, known))
        return False

    def _mark_on_axis(self, node: Node, kind: str, name: str) -> Mark:
        axis = node.value.get(kind)
        if axis is not None and isinstance(axis.value, list):
            for item in axis.value:
                if str(getattr(item.value, "text", item.value)) == name:
                    return Mark(self.name, item.line, item.column)
        return self.mark(axis or node)

    def _exclude(
        self, cells: list[Cell], excludes: tuple[Exclude, ...], nodes: Node | None
    ) -> tuple[list[Cell], list[Excluded]]:
        excluded: list[Excluded] = []
        gone: set[int] = set()
        for index, entry in enumerate(excludes):
            mark = self.mark(nodes, index) if nodes else Mark(self.name, 1, 1)
            matched = [at for at, cell in enumerate(cells) if _matches(entry, cell)]
            idle = [glob for glob in entry.lanes or () if not any(fnmatchcase(cell.id, glob) for cell in cells)]
            for glob in idle:
                self.problems.add(mark, f"{glob!r} of this exclusion matches no combination", absence=True)
            if not matched and not idle:
                self.problems.add(mark, "this exclusion matches no combination of the products", absence=True)
            excluded.extend(Excluded(cells[at].id, entry.why, mark) for at in matched if at not in gone)
            gone.update(matched)
        return [cell for at, cell in enumerate(cells) if at not in gone], excluded

    def _unique(self, cells: list[Cell]) -> list[Cell]:
        first: dict[str, Cell] = {}
        for cell in cells:
            other = first.setdefault(cell.id, cell)
            if other is not cell:
                early, late = sorted((other, cell), key=lambda one: (one.node.line, one.node.column))
                self.problems.add(
                    self.mark(late.node),
                    f"the lane id {cell.id!r} exists twice; it was first made at {self.mark(early.node)}",
                )
        return list(first.values())

    def _unused(self) -> None:
        """What the file declares and no lane uses would be silently ignored; so it is an error."""
        backends = self.root.value["backends"]
        for name, backend in self.file.backends.items():
            line, column = backends.keys[name]
            if (name,) not in self.used:
                self.problems.add(Mark(self.name, line, column), f"backend {name!r} has no lane", absence=True)
                continue
            for kind in ("toolkits", "archs", "variants"):
                for entry in getattr(backend, kind, None) or ():
                    if (name, kind, entry) not in self.used:
                        line, column = backends.value[name].value[kind].keys[entry]
                        self.problems.add(
                            Mark(self.name, line, column),
                            f"no lane uses {entry!r} of the {kind} of {name!r}",
                            absence=True,
                        )


def _matches(entry: Exclude, cell: Cell) -> bool:
    if entry.lanes is not None and not any(fnmatchcase(cell.id, glob) for glob in entry.lanes):
        return False
    return all(
        getattr(entry, axis) is None or fnmatchcase(getattr(cell, axis) or "", getattr(entry, axis))
        for axis in ("backend", "toolkit", "arch", "variant")
    )


def declared(backend: Backend, cell: Cell) -> tuple[Toolkit | None, Arch | None, Variant | None]:
    """The backend's own entries for a cell's axes."""
    return (
        backend.toolkits.get(cell.toolkit) if cell.toolkit else None,
        backend.archs.get(cell.arch) if cell.arch else None,
        backend.variants.get(cell.variant) if cell.variant else None,
    )


def compile_targets(arch: str | None, entry: Arch | None) -> tuple[tuple[str, ...], Target | None]:
    """The compile targets of an arch, and the table's entry of the first of them."""
    if arch is None:
        return (), None
    names = entry.targets if entry and entry.targets else (arch,)
    return names, targets().get(names[0])

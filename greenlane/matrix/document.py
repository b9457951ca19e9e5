"""YAML text to a tree of marked nodes, within limits: no duplicate key, no bomb, no cycle, no lost spelling.

The tree is built from the C parser's events in one loop, so that deep nesting can't exhaust the stack and every
limit is tested before memory is spent.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from greenlane.errors import MatrixError
from greenlane.matrix.model import Mark
from greenlane.matrix.problems import Problems

MAX_NODES = 150_000  # aliases counted as often as they are used
MAX_DEPTH = 40

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Integer(int):
    """An integer that still knows how it was written."""

    text: str


class Real(float):
    """A number that still knows how it was written: version 12.10 is not 12.1."""

    text: str


class Node:
    """A mapping, list or scalar, and where it was written. `keys` holds the mark of each key of a mapping."""

    __slots__ = ("column", "keys", "line", "merges", "value", "weight")

    def __init__(self, value: Any, line: int, column: int) -> None:
        self.value = value
        self.line = line
        self.column = column
        self.keys: dict[str, tuple[int, int]] = {}
        self.merges: list[Node] = []
        self.weight = 1

    def plain(self) -> Any:
        """The tree as plain Python values."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def parse(content: bytes, file: str, problems: Problems) -> Node:
    """The document's root. Raises what makes the rest unreadable; collects what doesn't."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MatrixError(f"{file}:{line}:1: not UTF-8 text (byte 0x{content[error.start]:02x})") from None
    try:
        return _Builder(file, problems).build(_Loader(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise MatrixError(f"{file}:{where}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise MatrixError(f"{file}:1:1: not valid YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:
        raise MatrixError(f"{file}:1:1: not valid YAML: {' '.join(str(error).split())}") from None


class _Builder:
    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.open: list[Node] = []
        self.pending: list[tuple[str, int, int] | None] = []  # the key that waits for its value, per open mapping
        self.anchors: dict[str, Node] = {}
        self.unfinished: dict[str, Node] = {}
        self.anchored: list[str | None] = []
        self.root: Node | None = None
        self.documents = 0
        self.count = 0

    def build(self, parser: Any) -> Node:
        while True:
            event = parser.get_event()
            name = type(event).__name__
            if name == "StreamEndEvent":
                break
            mark = event.start_mark
            self._event(name, event, mark.line + 1, mark.column + 1)
        if self.root is None:
            raise MatrixError(f"{self.file}:1:1: the file is empty; `greenlane init` writes a first matrix")
        return self.root

    def _event(self, name: str, event: Any, line: int, column: int) -> None:
        if name == "ScalarEvent":
            self._scalar(event, line, column)
        elif name in ("MappingStartEvent", "SequenceStartEvent"):
            self._start(event, Node({} if name[0] == "M" else [], line, column))
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            self._end()
        elif name == "AliasEvent":
            self._alias(event.anchor, line, column)
        elif name == "DocumentStartEvent":
            self.documents += 1
            if self.documents > 1:
                self._refuse(line, column, "a second document; a matrix is one document")

    def _scalar(self, event: Any, line: int, column: int) -> None:
        parent_is_mapping = bool(self.open) and isinstance(self.open[-1].value, dict)
        if parent_is_mapping and self.pending[-1] is None:
            self.pending[-1] = (event.value, line, column)
            if event.anchor:
                self.anchors[event.anchor] = Node(event.value, line, column)
            return
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._refuse(line, column, f"the tag {event.tag!r} is not understood; a matrix is plain data")
        node = Node(resolve(event.value) if event.implicit[0] and event.tag is None else event.value, line, column)
        if event.anchor:
            self.anchors[event.anchor] = node
        self._add(node)

    def _start(self, event: Any, node: Node) -> None:
        if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self._refuse(node.line, node.column, f"the tag {event.tag!r} is not understood; a matrix is plain data")
        if self.open and isinstance(self.open[-1].value, dict) and self.pending[-1] is None:
            self._refuse(node.line, node.column, "a key must be a plain word")
        if len(self.open) >= MAX_DEPTH:
            self._refuse(node.line, node.column, f"nested deeper than {MAX_DEPTH} levels")
        if event.anchor:
            self.anchors.pop(event.anchor, None)
            self.unfinished[event.anchor] = node
        self.anchored.append(event.anchor)
        self.open.append(node)
        self.pending.append(None)

    def _end(self) -> None:
        node = self.open.pop()
        self.pending.pop()
        anchor = self.anchored.pop()
        for source in node.merges:
            self._merge(node, source)
        if anchor and self.unfinished.get(anchor) is node:
            self.anchors[anchor] = self.unfinished.pop(anchor)
        self._add(node)

    def _alias(self, anchor: str, line: int, column: int) -> None:
        if anchor in self.unfinished:
            self._refuse(line, column, f"the alias *{anchor} stands inside its own anchor")
        if anchor not in self.anchors:
            self._refuse(line, column, f"the alias *{anchor} has no anchor")
        target = self.anchors[anchor]
        if self.open and isinstance(self.open[-1].value, dict) and self.pending[-1] is None:
            if not isinstance(target.value, str):
                self._refuse(line, column, "a key must be a plain word")
            self.pending[-1] = (target.value, line, column)
            return
        self._spend(target.weight, line, column)
        self._add(target)

    def _add(self, node: Node) -> None:
        self._spend(1, node.line, node.column)
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.weight += node.weight
        if isinstance(parent.value, list):
            parent.value.append(node)
            return
        key, line, column = self.pending[-1] or ("", 0, 0)  # a value always follows its key
        self.pending[-1] = None
        if key == "<<":
            parent.merges.extend(node.value if isinstance(node.value, list) else [node])
        elif key in parent.keys:
            first = parent.keys[key]
            self.problems.add(Mark(self.file, line, column), f"duplicate key {key!r}, first written in line {first[0]}")
        else:
            parent.value[key] = node
            parent.keys[key] = (line, column)

    def _merge(self, node: Node, source: Node) -> None:
        if not isinstance(source.value, dict) or not isinstance(node.value, dict):
            self._refuse(source.line, source.column, "<< takes a mapping or a list of mappings")
        self._spend(len(source.value), node.line, node.column)
        for key, value in source.value.items():
            if key not in node.value:
                node.value[key] = value
                node.keys[key] = source.keys[key]

    def _spend(self, nodes: int, line: int, column: int) -> None:
        self.count += nodes
        if self.count > MAX_NODES:
            self._refuse(line, column, f"more than {MAX_NODES} values once aliases are expanded")

    def _refuse(self, line: int, column: int, message: str) -> None:
        raise MatrixError(*self.problems.lines(), f"{self.file}:{line}:{column}: {message}")


def resolve(text: str) -> Any:
    """A plain scalar by YAML 1.2's core schema: `on`, `no` and dates stay text.

    >>> resolve("7.10").text, resolve("no"), resolve("12") + 1, resolve("~")
    ('7.10', 'no', 13, None)
    """
    lowered = text.lower()
    if lowered in _CONSTANTS:
        return _CONSTANTS[lowered]
    if _INTEGER.fullmatch(text):
        integer = Integer(int(text, 0) if text[:2] in ("0x", "0o") else int(text))
        integer.text = text
        return integer
    if _FLOAT.fullmatch(text):
        real = Real(text)
        real.text = text
        return real
    return text

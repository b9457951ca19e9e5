"""One slice to facts: tree-sitter finds the declarations, definitions and calls; plain scans find the identifiers."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from greenlane.checks.source import signature
from greenlane.checks.source.facts import (
    EMPTY,
    Call,
    Callable,
    Cast,
    Class,
    Facts,
    Field,
    Function,
    Launch,
    Local,
    PointerArray,
    Trait,
)
from greenlane.checks.source.signature import span_text

TIME_LIMIT_S = 10.0  # for one slice

IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.A)
_GPU_WORDS = re.compile(r"__global__|__device__|<<<")
_DRIVER_LAUNCH = {"hipLaunchKernelGGL", "hipLaunchKernel"}
_ALIAS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*([\w:]+)\s*;")
_IMPORT = re.compile(r"\busing\s+(?:typename\s+)?[\w:<>, ]*::\s*(\w+)\s*;")
_ARRAY = re.compile(r"\bvoid\s*\*\s*(?:const\s+)?(\w+)\s*\[\s*\w*\s*\]\s*=?\s*\{([^{};]*)\}\s*;")
_LOOKUP_WORDS = ("dlsym", "GetProcAddress", "ymbol", "ookup")
_LOOKUP = re.compile(r'\b(?:dlsym|GetProcAddress|\w*[gG]et\w*[sS]ymbol\w*|\w*[lL]ookup\w*)\s*\([^()]*"(\w+)"\s*\)')

_QUERY = """
(function_definition) @function
(namespace_definition) @namespace
(class_specifier body: (_)) @class
(struct_specifier body: (_)) @class
(union_specifier body: (_)) @class
(enum_specifier body: (_)) @enum
(declaration) @declaration
(field_declaration) @field
(call_expression arguments: (argument_list) @arguments) @call
(alias_declaration) @alias
(type_definition) @alias
(using_declaration) @using
(lambda_expression) @lambda
(for_range_loop) @range
(catch_clause) @catch
(class_specifier !body name: (type_identifier) @forward)
(struct_specifier !body name: (type_identifier) @forward)
(ERROR) @error
(MISSING) @gap
"""


@lru_cache(maxsize=2)
def _grammar(gpu: bool) -> tuple[Parser, Query]:
    import tree_sitter_cpp
    import tree_sitter_cuda

    language = Language((tree_sitter_cuda if gpu else tree_sitter_cpp).language())
    return Parser(language), Query(language, _QUERY)


def is_gpu(path: str, code: str) -> bool:
    return path.endswith((".cu", ".cuh", ".hip", ".mu")) or bool(_GPU_WORDS.search(code))


def parse(path: str, code: str, kept: str) -> Facts:
    """Facts of a slice; `code` has its literals blanked, `kept` has them, both have no directives."""
    parser, query = _grammar(is_gpu(path, code))
    tree = parser.parse(kept.encode("latin-1", "replace"))
    if tree is None:
        return token_facts(code, "the grammar gave up")
    try:
        return _Reader(code, kept, time.monotonic() + TIME_LIMIT_S).facts(QueryCursor(query).captures(tree.root_node))
    except (TimeoutError, RecursionError) as error:
        return token_facts(code, "took too long" if isinstance(error, TimeoutError) else "nested too deeply")


def token_facts(code: str, problem: str) -> Facts:
    """The fallback: names count as uses and nothing is judged."""
    tokens = frozenset(IDENTIFIER.findall(code))
    return EMPTY._replace(tokens=tokens, outside=tokens, problem=problem)


class _Reader:
    def __init__(self, code: str, kept: str, deadline: float) -> None:
        self.code = code
        self.kept = kept
        self.deadline = deadline
        self.functions: list[Function] = []
        self.ranges: list[tuple[int, int, int]] = []  # start, end, index of internal definitions
        self.heads: set[str] = set()  # identifiers in front of the bodies of internal functions, their own names aside
        self.bodies: list[tuple[int, int, int]] = []  # start, end, index of all definitions

    def facts(self, found: dict[str, list[Node]]) -> Facts:
        self.errors = tuple((node.start_point[0] + 1, node.end_point[0] + 1) for node in found.get("error", ()))
        scopes = self._scopes(found)
        self._functions(found, scopes)
        self._flatten()
        calls, launches = self._calls(found.get("call", ()))
        tokens = frozenset(IDENTIFIER.findall(self.code))
        objects = frozenset(self._declared(found))
        return Facts(
            functions=tuple(self.functions),
            calls=tuple(calls),
            launches=tuple(launches),
            arrays=tuple(self._arrays()),
            casts=tuple(self._casts()),
            classes=tuple(self.classes),
            callables=tuple(self._callables(found.get("alias", ()))),
            names=objects | {function.name for function in self.functions},
            aliases=tuple(_ALIAS.findall(self.code)),
            imported=frozenset(_IMPORT.findall(self.code)),
            objects=objects,
            namespaces=frozenset(self.namespaces),
            using=frozenset(self._using(found.get("using", ()))),
            tokens=tokens,
            outside=self._outside(tokens),
            errors=self.errors,
            gaps=bool(found.get("gap")),
        )

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError

    # Scopes: namespaces and classes, nested by position.

    def _scopes(self, found: dict[str, list[Node]]) -> list[tuple[int, int, str, str]]:
        """(start, end, full name, kind), outermost first."""
        raw = [(node.start_byte, -node.end_byte, "namespace", node) for node in found.get("namespace", ())]
        raw += [(node.start_byte, -node.end_byte, "class", node) for node in found.get("class", ())]
        raw.sort(key=lambda item: item[:2])
        self.namespaces: set[str] = set()
        self.classes: list[Class] = []
        self.field_lists: dict[int, list[Field]] = {}
        open_scopes: list[tuple[int, int, str, str]] = []
        scopes: list[tuple[int, int, str, str]] = []
        for start, negative_end, kind, node in raw:
            end = -negative_end
            while open_scopes and open_scopes[-1][1] <= start:
                open_scopes.pop()
            outer = open_scopes[-1][2] if open_scopes else ""
            inside_anonymous = any(scope[3] == "anonymous" for scope in open_scopes)
            name = self._scope_name(node, kind)
            full = f"{outer}::{name}" if outer and name else outer or name
            if kind == "namespace":
                if name:
                    self.namespaces.add(full)
                kind = "anonymous" if not name or inside_anonymous else "namespace"
            else:
                self._class(node, name, outer)
            scope = (start, end, full, kind)
            open_scopes.append(scope)
            scopes.append(scope)
        return scopes

    @staticmethod
    def _scope_name(node: Node, kind: str) -> str:
        name = node.child_by_field_name("name")
        if name is None or name.text is None:
            return ""
        if kind == "class" and name.type == "template_type":
            inner = name.child_by_field_name("name")
            return span_text(inner) if inner is not None else ""
        return re.sub(r"\s|\binline\b", "", span_text(name))

    def _class(self, node: Node, name: str, scope: str) -> None:
        body = node.child_by_field_name("body")
        bases = next((child for child in node.children if child.type == "base_class_clause"), None)
        written = []
        if bases is not None:
            written = [
                span_text(child) for child in bases.named_children if child.type not in {"access_specifier", "virtual"}
            ]
        fields: list[Field] = []
        for child in body.named_children if body is not None else ():
            if child.type == "field_declaration":
                fields += signature.fields(child)
        named = node.child_by_field_name("name")
        special = named is not None and named.type == "template_type"
        self.classes.append(
            Class(name, scope, node.start_point[0] + 1, node.end_point[0] + 1, tuple(written), tuple(fields), special)
        )

    # Functions.

    def _functions(self, found: dict[str, list[Node]], scopes: list[tuple[int, int, str, str]]) -> None:
        nodes = [(node, True) for node in found.get("function", ())]
        nodes += [(node, False) for node in found.get("declaration", ())]
        nodes += [(node, False) for node in found.get("field", ())]
        nodes.sort(key=lambda item: (item[0].start_byte, -item[0].end_byte))
        locals_of = self._local_nodes(found)
        open_scopes: list[tuple[int, int, str, str]] = []
        next_scope = 0
        definition_end = -1
        for node, defines in nodes:
            start = node.start_byte
            while next_scope < len(scopes) and scopes[next_scope][0] <= start:
                open_scopes.append(scopes[next_scope])
                next_scope += 1
            open_scopes = [scope for scope in open_scopes if scope[1] > start]
            if not defines and start < definition_end:
                continue  # a local
            self._check_time()
            read = signature.function(node, defines)
            if read is None:
                continue
            kinds = {scope[3] for scope in open_scopes}
            self._add(read, node, open_scopes[-1] if open_scopes else None, "anonymous" in kinds, defines, locals_of)
            if defines and not (open_scopes and open_scopes[-1][3] == "class" and node.end_byte < definition_end):
                definition_end = max(definition_end, node.end_byte)

    def _add(
        self,
        read: signature.Read,
        node: Node,
        scope: tuple[int, int, str, str] | None,
        anonymous: bool,
        defines: bool,
        locals_of: list[tuple[int, Node]],
    ) -> None:
        full = scope[2] if scope else ""
        traits = read.traits
        if traits & Trait.FRIEND and scope is not None and scope[3] == "class":
            scope, full = None, full.rpartition("::")[0]  # found in the namespace around
        member = (scope is not None and scope[3] == "class") or bool(read.qualifier)
        if member:
            traits |= Trait.MEMBER
        if (anonymous and not (scope and scope[3] == "class")) or (traits & Trait.STATIC and not member):
            traits |= Trait.INTERNAL
        if read.name == full.rpartition("::")[2] or (
            read.qualifier and read.name == read.qualifier.rpartition("::")[2]
        ):
            traits |= Trait.CONSTRUCTOR
        if read.qualifier:
            traits |= Trait.QUALIFIED
            full = f"{full}::{read.qualifier}" if full else read.qualifier
        tokens: frozenset[str] = frozenset()
        variables: tuple[Local, ...] = ()
        body_line = 0
        if defines:
            traits |= Trait.DEFINITION
            index = len(self.functions)
            begin, end = node.start_byte, node.end_byte
            self.bodies.append((begin, end, index))
            if read.body is not None:
                body_line = read.body.start_point[0] + 1
            mentions = Counter(IDENTIFIER.findall(self.code, read.params_end, end))
            tokens = frozenset(mentions)
            variables = tuple(
                local._replace(mentions=mentions[local.name]) for local in self._locals(locals_of, read.params_end, end)
            )
            if traits & Trait.INTERNAL:
                self.ranges.append((read.outer.start_byte, end, index))
        if traits & Trait.INTERNAL:
            self.heads.update(set(IDENTIFIER.findall(self.code, read.outer.start_byte, read.params_end)) - {read.name})
        if traits & Trait.INTERNAL and not defines:
            self.ranges.append((read.outer.start_byte, node.end_byte, -1))
        self.functions.append(
            Function(
                read.name,
                full,
                int(traits),
                read.line,
                read.column,
                read.outer.start_point[0] + 1,
                node.end_point[0] + 1,
                read.params,
                read.variadic,
                read.returns,
                tokens,
                variables,
                body_line,
            )
        )

    @staticmethod
    def _local_nodes(found: dict[str, list[Node]]) -> list[tuple[int, Node]]:
        kinds = ("declaration", "lambda", "range", "catch")
        nodes = [(node.start_byte, node) for kind in kinds for node in found.get(kind, ())]
        nodes.sort(key=lambda item: item[0])
        return nodes

    def _locals(self, nodes: list[tuple[int, Node]], start: int, end: int) -> Iterator[Local]:
        first = bisect_right(nodes, start, key=lambda item: item[0])
        for at, node in nodes[first:]:
            if at >= end:
                return
            yield from signature.locals_of(node)

    def _outside(self, tokens: frozenset[str]) -> frozenset[str]:
        if not self.ranges:
            return tokens
        parts: list[str] = []
        at = 0
        for start, end, _ in sorted(self.ranges):
            if start > at:
                parts.append(self.code[at:start])
            at = max(at, end)
        parts.append(self.code[at:])
        return frozenset(self.heads.union(IDENTIFIER.findall("\n".join(parts))))

    def _enclosing(self, offset: int) -> int:
        """Index of the innermost definition around an offset, -1 outside of all."""
        return self._owners[bisect_right(self._edges, offset) - 1] if self._edges and offset >= self._edges[0] else -1

    def _flatten(self) -> None:
        """Turn the nested bodies into edges, each with the definition that owns what follows it."""
        self._edges: list[int] = []
        self._owners: list[int] = []
        stack: list[tuple[int, int]] = []  # end, index
        for start, end, index in sorted(self.bodies, key=lambda body: (body[0], -body[1])):
            while stack and stack[-1][0] <= start:
                self._leave(stack)
            self._edges.append(start)
            self._owners.append(index)
            stack.append((end, index))
        while stack:
            self._leave(stack)

    def _leave(self, stack: list[tuple[int, int]]) -> None:
        self._edges.append(stack.pop()[0])
        self._owners.append(stack[-1][1] if stack else -1)

    # Calls, launches, casts, arrays.

    def _calls(self, nodes: Iterable[Node]) -> tuple[list[Call], list[Launch]]:
        calls: list[Call] = []
        launches: list[Launch] = []
        for node in nodes:
            callee = node.child_by_field_name("function")
            arguments = node.child_by_field_name("arguments")
            if callee is None or arguments is None or arguments.has_error:
                continue
            name, scope, receiver = signature.callee(callee)
            if not name:
                continue
            count = signature.argument_count(arguments)
            row, column = node.start_point
            point = callee.start_point if receiver is None else (row, column)
            if any(child.type == "kernel_call_syntax" for child in node.children):
                launches.append(Launch(name, scope, count, point[0] + 1, point[1] + 1))
            elif name in _DRIVER_LAUNCH and count >= 5:
                kernel = signature.launched(arguments)
                if kernel:
                    launches.append(Launch(kernel, "", count - 5, point[0] + 1, point[1] + 1))
            else:
                line, col = (
                    (callee.end_point[0] + 1, callee.end_point[1] - len(name) + 1)
                    if receiver is not None
                    else (point[0] + 1, point[1] + 1)
                )
                calls.append(Call(name, scope, receiver, count, line, col, self._enclosing(node.start_byte)))
        self._check_time()
        return calls, launches

    def _arrays(self) -> Iterator[PointerArray]:
        if "void*" not in self.code and "void *" not in self.code:
            return
        for match in _ARRAY.finditer(self.kept):
            inside = match.group(2).strip().rstrip(",")
            count = len(signature.split_commas(inside)) if inside else 0
            line, column = self._position(match.start())
            yield PointerArray(match.group(1), count, line, column, self._enclosing(match.start()))

    def _position(self, offset: int) -> tuple[int, int]:
        return self.kept.count("\n", 0, offset) + 1, offset - self.kept.rfind("\n", 0, offset)

    def _casts(self) -> Iterator[Cast]:
        if not any(word in self.code for word in _LOOKUP_WORDS):
            return
        for match in _LOOKUP.finditer(self.kept):
            before = self.kept[max(0, match.start() - 200) : match.start()]
            written = re.search(r"(?:reinterpret_cast\s*<\s*([\w:]+)\s*>\s*\(|\(\s*([\w:]+)\s*\))\s*$", before)
            if written:
                line, column = self._position(match.start())
                yield Cast(written.group(1) or written.group(2), match.group(1), line, column)

    @staticmethod
    def _callables(nodes: Iterable[Node]) -> Iterator[Callable]:
        for node in nodes:
            read = signature.function_type(span_text(node))
            if read is not None:
                yield Callable(read[0], read[1], node.start_point[0] + 1)

    def _declared(self, found: dict[str, list[Node]]) -> Iterator[str]:
        for node in found.get("declaration", ()):
            if self._enclosing(node.start_byte) < 0:
                yield from signature.declared(node)
        for node in found.get("enum", ()):
            yield from signature.enumerators(node)
        for entry in self.classes:
            if not entry.specialization:
                yield entry.name
            for field in entry.fields:
                yield field.name
        for node in found.get("forward", ()):
            yield span_text(node)
        for namespace in self.namespaces:
            yield from namespace.split("::")
        for node in found.get("alias", ()):
            yield from signature.alias_names(node)

    @staticmethod
    def _using(nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            text = span_text(node)
            match = re.match(r"using\s+namespace\s+([\w:]+)", text)
            if match:
                yield match.group(1)

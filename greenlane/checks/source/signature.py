"""Read single syntax nodes: function signatures, parameters, locals, callees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from greenlane.checks.source.facts import Field, Local, Param, Trait

_BLANKS = re.compile(r"\s+")
_TIGHT = re.compile(r"\s*([*&<>,()\[\]])\s*")
_UNUSED = re.compile(r"maybe_unused|\(\(\s*(__)?unused(__)?\s*\)\)|\b[A-Z]+_UNUSED\b")
_SCALAR = re.compile(
    r"(?:(?:const|constexpr|volatile|static|unsigned|signed|register)\s+)*"
    r"(?:bool|char|short|int|long|float|double|unsigned|signed|(?:std::)?size_t|ssize_t|(?:std::)?ptrdiff_t|(?:std::)?u?int(?:ptr|8|16|32|64)_t)"
    r"(?:\s+(?:int|long|short|char|double|const|unsigned))*"
)
_WRAPPERS = {
    "pointer_declarator",
    "reference_declarator",
    "parenthesized_declarator",
    "array_declarator",
    "attributed_declarator",
}
_NAMES = {"identifier", "field_identifier", "type_identifier"}
_INLINE_WORDS = {"inline", "constexpr", "consteval", "__forceinline__", "__inline__", "__forceinline"}


class Read(NamedTuple):
    name: str
    qualifier: str
    traits: int
    line: int
    column: int
    outer: Node  # with template and linkage around it
    params: tuple[Param, ...]
    params_end: int  # offset behind the parameter list
    variadic: bool
    returns: str
    body: Node | None


def span_text(node: Node) -> str:
    return _BLANKS.sub(" ", raw(node)).strip()


def raw(node: Node) -> str:
    return (node.text or b"").decode("latin-1")


def tidy(text: str) -> str:
    return _TIGHT.sub(r"\1", _BLANKS.sub(" ", text)).strip()


def function(node: Node, defines: bool) -> Read | None:
    """The signature of a definition or declaration; None for what declares no function."""
    declarator = node.child_by_field_name("declarator")
    pointers = ""
    while declarator is not None and declarator.type in {
        "pointer_declarator",
        "reference_declarator",
        "attributed_declarator",
    }:
        pointers += "&" if declarator.type == "reference_declarator" else "*"
        inner = declarator.child_by_field_name("declarator")
        declarator = inner if inner is not None or not declarator.named_children else declarator.named_children[-1]
    if declarator is None or declarator.type != "function_declarator":
        return None
    named = declarator.child_by_field_name("declarator")
    parameters = declarator.child_by_field_name("parameters")
    if named is None or parameters is None:
        return None
    parts = _name_parts(named)
    if not parts:
        return None
    outer = _outer(node)
    params, variadic = ((), True) if parameters.has_error else _params(parameters)
    kind = node.child_by_field_name("type")
    returns = (span_text(kind) if kind is not None else "") + pointers
    body = node.child_by_field_name("body") if defines else None
    traits = _traits(node, declarator, outer, named, returns, defines and body is None)
    row, column = named.end_point[0], named.end_point[1] - len(parts[-1])
    if named.type == "template_function":
        row, column = named.start_point
    return Read(
        parts[-1],
        "::".join(parts[:-1]),
        traits,
        row + 1,
        max(column, 0) + 1,
        outer,
        params,
        parameters.end_byte,
        variadic,
        returns,
        body,
    )


def _name_parts(node: Node) -> list[str]:
    if node.type in _NAMES or node.type in {"destructor_name", "operator_name"}:
        return [_BLANKS.sub("", raw(node))]
    if node.type == "template_function":
        inner = node.child_by_field_name("name")
        return _name_parts(inner) if inner is not None else []
    if node.type in {"qualified_identifier", "template_type"}:
        return split_qualified(raw(node))
    return []


def split_qualified(text: str) -> list[str]:
    """Names of `a::b<c>::d`, template arguments left out."""
    out, depth = [], 0
    for char in text:
        depth += (char == "<") - (char == ">")
        if depth == 0 and char != ">" and not char.isspace():
            out.append(char)
    return [part for part in "".join(out).split("::") if part]


def _outer(node: Node) -> Node:
    parent = node.parent
    while parent is not None and parent.type in {"template_declaration", "linkage_specification"}:
        if parent.type == "linkage_specification" and parent.child_by_field_name("body") != node:
            break
        node, parent = parent, parent.parent
    return node


def _traits(node: Node, declarator: Node, outer: Node, named: Node, returns: str, bodiless: bool) -> int:
    traits = 0
    for child in node.children:
        word = child.type
        if word in {"storage_class_specifier", "type_qualifier"}:
            word = raw(child)
        if word == "static":
            traits |= Trait.STATIC
        elif word in _INLINE_WORDS:
            traits |= Trait.INLINE
        elif word == "virtual":
            traits |= Trait.VIRTUAL
        elif word == "__device__":
            traits |= Trait.DEVICE
        elif word == "__global__":
            traits |= Trait.KERNEL
        elif word in {"attribute_declaration", "attribute_specifier"} and _UNUSED.search(raw(child)):
            traits |= Trait.MAYBE_UNUSED
        elif word in {"default_method_clause", "delete_method_clause", "pure_virtual_clause"}:
            bodiless = True
        elif word == "body":
            break
    for child in declarator.children:
        if child.type == "virtual_specifier":
            traits |= Trait.OVERRIDE
    if bodiless or node.child_by_field_name("default_value") is not None:
        traits |= Trait.BODILESS
    if outer.type == "template_declaration":
        traits |= Trait.TEMPLATE
    if any(parent is not None and parent.type == "friend_declaration" for parent in (node.parent, outer.parent)):
        traits |= Trait.FRIEND
    if named.type == "template_function" or (
        outer.type == "template_declaration" and raw(outer).startswith("template <>")
    ):
        traits |= Trait.SPECIALIZATION
    if _in_extern_c(outer):
        traits |= Trait.EXTERN_C
    if named.type in {"operator_name", "destructor_name"} or "operator" in raw(named):
        traits |= Trait.OPERATOR
    if returns in {"void", ""}:
        traits |= Trait.VOID
    if _UNUSED.search(raw(node)[: max(0, named.start_byte - node.start_byte)]):
        traits |= Trait.MAYBE_UNUSED
    return traits


def _in_extern_c(node: Node) -> bool:
    if node.type == "linkage_specification":
        return True
    parent = node.parent
    return parent is not None and (
        parent.type == "linkage_specification"
        or (
            parent.type == "declaration_list"
            and parent.parent is not None
            and parent.parent.type == "linkage_specification"
        )
    )


def _params(node: Node) -> tuple[tuple[Param, ...], bool]:
    params: list[Param] = []
    variadic = False
    for child in node.children:
        if child.type == "..." or child.type == "variadic_parameter_declaration":
            variadic = True
        elif child.type in {"parameter_declaration", "optional_parameter_declaration"}:
            params.append(_param(child))
    if len(params) == 1 and params[0].type == "void" and not params[0].name:
        params = []
    return tuple(params), variadic


def _param(node: Node) -> Param:
    named = _innermost(node.child_by_field_name("declarator"))
    default = node.child_by_field_name("default_value")
    text = node.text or b""
    base = node.start_byte
    if default is not None:
        text = text[: text.rfind(b"=", 0, default.start_byte - base)]
    name, line, column = "", node.start_point[0] + 1, node.start_point[1] + 1
    if named is not None:
        name = raw(named)
        line, column = named.start_point[0] + 1, named.start_point[1] + 1
        text = text[: named.start_byte - base] + b" " + text[named.end_byte - base :]
    written = text.decode("latin-1")
    return Param(
        tidy(written),
        name,
        tidy(raw(default)) if default is not None else "",
        line,
        column,
        bool(_UNUSED.search(written)),
    )


def _innermost(node: Node | None) -> Node | None:
    """The name inside a declarator; None for an abstract one."""
    while node is not None and node.type not in _NAMES:
        inner = node.child_by_field_name("declarator")
        if inner is None:
            candidates = [
                child
                for child in node.named_children
                if child.type in _NAMES or child.type in _WRAPPERS or child.type == "function_declarator"
            ]
            inner = candidates[0] if node.type in _WRAPPERS and candidates else None
        node = inner
    return node


def locals_of(node: Node) -> Iterator[Local]:
    if node.type == "declaration":
        yield from _declared_locals(node)
    elif node.type == "lambda_expression":
        declarator = node.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        for param in _params(parameters)[0] if parameters is not None else ():
            yield Local(param.name, param.type, param.line, param.column, False, True)
        captures = node.child_by_field_name("captures")
        for name in re.findall(r"[&]?\s*([A-Za-z_]\w*)\s*=", raw(captures)) if captures is not None else ():
            yield Local(name, "", node.start_point[0] + 1, node.start_point[1] + 1, False, True)
    else:
        for name in _names_under(node.child_by_field_name("declarator") or node.child_by_field_name("parameters")):
            yield Local(raw(name), "", name.start_point[0] + 1, name.start_point[1] + 1, False, True)


def _names_under(node: Node | None) -> Iterator[Node]:
    if node is None:
        return
    if node.type in _NAMES:
        yield node
    for child in node.named_children:
        yield from _names_under(child)


def _declared_locals(node: Node) -> Iterator[Local]:
    kind = node.child_by_field_name("type")
    written = span_text(kind) if kind is not None else ""
    prefix = raw(node)[: (kind.end_byte if kind is not None else node.start_byte) - node.start_byte]
    unused = bool(_UNUSED.search(prefix))
    scalar = bool(_SCALAR.fullmatch(written))
    in_block = node.parent is not None and node.parent.type == "compound_statement"
    for declarator in node.children_by_field_name("declarator"):
        target = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        pointer = ""
        if target is not None and target.type == "structured_binding_declarator":
            for name in _names_under(target):
                yield Local(raw(name), "auto", name.start_point[0] + 1, name.start_point[1] + 1, False, True)
            continue
        if target is not None and target.type == "pointer_declarator":
            pointer = "*"
        elif target is not None and target.type == "reference_declarator":
            pointer = "&"
        named = _innermost(target)
        if named is None:
            continue
        initialised = declarator.type == "init_declarator"
        plain = in_block and ((pointer == "*" and (scalar or initialised)) or (scalar and pointer == ""))
        yield Local(raw(named), written + pointer, named.start_point[0] + 1, named.start_point[1] + 1, plain, unused)


def callee(node: Node) -> tuple[str, str, str | None]:
    """(name, scope as written, receiver) of what is called; the name is empty where it is an expression."""
    if node.type == "identifier":
        return raw(node), "", None
    if node.type == "template_function":
        inner = node.child_by_field_name("name")
        return callee(inner) if inner is not None else ("", "", None)
    if node.type == "qualified_identifier":
        text = raw(node)
        parts = split_qualified(text)
        if not parts or not re.fullmatch(r"[A-Za-z_]\w*", parts[-1]):
            return "", "", None
        return parts[-1], "::".join(parts[:-1]) or "::", None
    if node.type == "field_expression":
        argument, field = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if argument is None or field is None:
            return "", "", None
        if field.type != "field_identifier":
            field = field.child_by_field_name("name") or field
        receiver = raw(argument) if argument.type in {"identifier", "this"} else ""
        return raw(field) if field.type == "field_identifier" else "", "", receiver
    return "", "", None


def argument_count(node: Node) -> int:
    children = [child for child in node.named_children if child.type != "comment"]
    packed = any(child.type == "parameter_pack_expansion" for child in children)
    return -len(children) if packed else len(children)


def launched(arguments: Node) -> str:
    """The kernel that hipLaunchKernelGGL is given."""
    first = arguments.named_children[0]
    if first.type == "parenthesized_expression" and first.named_children:
        first = first.named_children[0]
    return callee(first)[0]


def function_type(text: str) -> tuple[str, tuple[str, ...]] | None:
    match = re.match(r"typedef\s.*?\(\s*(?:\w+::)*\*\s*(\w+)\s*\)\s*\((.*)\)\s*;$", text, re.S)
    match = match or re.match(r"using\s+(\w+)\s*=\s*.*?\(\s*\*\s*\)\s*\((.*)\)\s*;$", text, re.S)
    if not match:
        return None
    inside = match.group(2).strip()
    return match.group(1), () if inside in {"", "void"} else tuple(tidy(part) for part in split_commas(inside))


def split_commas(text: str) -> list[str]:
    parts, depth, at = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append(text[at:index])
            at = index + 1
    return [*parts, text[at:]]


def _is_function(declarator: Node) -> bool:
    """Whether a declarator is of a function that returns a pointer or reference, perhaps."""
    node: Node | None = declarator
    while node is not None and node.type in {"pointer_declarator", "reference_declarator", "attributed_declarator"}:
        node = node.named_children[-1] if node.named_children else None
    return node is not None and node.type == "function_declarator"


def fields(node: Node) -> Iterator[Field]:
    kind = node.child_by_field_name("type")
    written = span_text(kind) if kind is not None else ""
    for declarator in node.children_by_field_name("declarator"):
        named = _innermost(declarator)
        if named is not None and not _is_function(declarator):
            yield Field(raw(named), written, named.start_point[0] + 1)


def declared(node: Node) -> Iterator[str]:
    for declarator in node.children_by_field_name("declarator"):
        target = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        if target is not None and not _is_function(target):
            named = _innermost(target)
            if named is not None:
                yield raw(named)


def enumerators(node: Node) -> Iterator[str]:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None:
        yield raw(name)
    for child in body.named_children if body is not None else ():
        if child.type == "enumerator":
            inner = child.child_by_field_name("name")
            if inner is not None:
                yield raw(inner)


def alias_names(node: Node) -> Iterator[str]:
    name = node.child_by_field_name("name")
    if name is not None:
        yield raw(name)
    for declarator in node.children_by_field_name("declarator"):
        named = _innermost(declarator)
        if named is not None:
            yield raw(named)
        else:
            yield from (raw(found) for found in _names_under(declarator))

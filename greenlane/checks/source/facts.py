"""What the index knows of one slice of a file. Plain tuples, so that they go through a cache and between processes."""

from __future__ import annotations

from typing import NamedTuple


class Trait:
    """Bits of Function.traits; plain integers, for they are tested a million times."""

    DEFINITION = 1
    INTERNAL = 2  # static, or in an anonymous namespace
    INLINE = 4  # inline, constexpr, consteval, __forceinline__
    TEMPLATE = 8
    MEMBER = 16
    VIRTUAL = 32
    OVERRIDE = 64
    DEVICE = 128
    KERNEL = 256
    MAYBE_UNUSED = 512
    EXTERN_C = 1024
    SPECIALIZATION = 2048
    CONSTRUCTOR = 4096
    BODILESS = 8192  # = default, = delete, = 0
    OPERATOR = 16384
    FRIEND = 32768
    VOID = 65536  # returns nothing
    STATIC = 131072
    QUALIFIED = 262144  # named from outside: `void A::f()`


class Param(NamedTuple):
    type: str  # blanks normalised
    name: str
    default: str
    line: int
    column: int
    maybe_unused: bool


class Local(NamedTuple):
    name: str
    type: str
    line: int
    column: int
    plain: bool  # a scalar or a pointer without a destructor to run
    maybe_unused: bool
    mentions: int = 2  # of the name in the function, its declaration included


class Function(NamedTuple):
    name: str
    scope: str  # "a::B"
    traits: int
    line: int
    column: int
    first: int  # with `template <...>` and attributes
    last: int
    params: tuple[Param, ...]
    variadic: bool
    returns: str
    tokens: frozenset[str]  # identifiers of a definition: body and initialisers
    locals: tuple[Local, ...]
    body: int  # line of the opening brace

    @property
    def least(self) -> int:
        return sum(1 for param in self.params if not param.default)

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.variadic or count <= len(self.params))

    def has(self, trait: int) -> bool:
        return self.traits & trait != 0


class Call(NamedTuple):
    name: str
    scope: str  # as written before `::`; "::" for the global one
    receiver: str | None  # None: no member call; "" : not a plain name
    arity: int  # arguments; negative where a pack is among them
    line: int
    column: int
    function: int  # index of the enclosing definition, -1 outside


class Launch(NamedTuple):
    kernel: str
    scope: str
    arity: int
    line: int
    column: int


class PointerArray(NamedTuple):
    """`void* args[] = {&a, &b}`: what a launch through the driver passes on."""

    name: str
    arity: int
    line: int
    column: int
    function: int


class Cast(NamedTuple):
    """A function looked up by name and cast to a function type."""

    type: str
    symbol: str
    line: int
    column: int


class Field(NamedTuple):
    name: str
    type: str
    line: int


class Class(NamedTuple):
    name: str
    scope: str
    line: int
    last: int
    bases: tuple[str, ...]
    fields: tuple[Field, ...]
    specialization: bool


class Callable(NamedTuple):
    """A named function pointer type."""

    name: str
    params: tuple[str, ...]
    line: int


class Facts(NamedTuple):
    functions: tuple[Function, ...]
    calls: tuple[Call, ...]
    launches: tuple[Launch, ...]
    arrays: tuple[PointerArray, ...]
    casts: tuple[Cast, ...]
    classes: tuple[Class, ...]
    callables: tuple[Callable, ...]
    names: frozenset[
        str
    ]  # everything declared: functions, variables, types, fields, enumerators, namespaces; no locals
    aliases: tuple[tuple[str, str], ...]  # namespace aliases: name, target as written
    imported: frozenset[str]  # names that a using-declaration brings in
    objects: frozenset[str]  # those of them that are no functions
    namespaces: frozenset[str]  # opened here, full names
    using: frozenset[str]  # namespaces taken in whole
    tokens: frozenset[str]  # every identifier of the slice
    outside: frozenset[str]  # identifiers outside of internal functions
    errors: tuple[tuple[int, int], ...]  # line ranges that no grammar took
    gaps: bool = False  # the grammar filled in what it missed, a semicolon behind a macro mostly
    problem: str | None = None


_NONE: frozenset[str] = frozenset()
EMPTY = Facts((), (), (), (), (), (), (), _NONE, (), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, ())

"""What a matrix says about the static checks: the `checks:` section."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

Severity = Literal["error", "warning", "note"]


class Rule(StrEnum):
    """Every rule that a finding can carry."""

    ALIAS_GAP = "alias-gap"
    ARCH_LIST = "arch-list"
    CALL_ARITY = "call-arity"
    DECLARATION_MISMATCH = "declaration-mismatch"
    ENV_DOC = "env-doc"
    FOREIGN_INCLUDE = "foreign-include"
    GUARD_AVAILABILITY = "guard-availability"
    GUARD_DEAD = "guard-dead"
    GUARD_DOUBLED = "guard-doubled"
    GUARD_MISSING_ARM = "guard-missing-arm"
    GUARD_NEGATION = "guard-negation"
    GUARD_UNKNOWN_MACRO = "guard-unknown-macro"
    HEADER_GUARD = "header-guard"
    LAUNCH_ARITY = "launch-arity"
    LINK_PRESENCE = "link-presence"
    MIRROR_PARITY = "mirror-parity"
    MISSING_INCLUDE = "missing-include"
    POINTER_CAST_MISMATCH = "pointer-cast-mismatch"
    RECORD = "record"
    SUPPRESSION = "suppression"
    UNUSED_FUNCTION = "unused-function"
    UNUSED_PARAMETER = "unused-parameter"
    UNUSED_VARIABLE = "unused-variable"
    WARP_SIZE = "warp-size"


WARNINGS = frozenset(
    {
        Rule.ARCH_LIST,
        Rule.ENV_DOC,
        Rule.GUARD_DOUBLED,
        Rule.GUARD_NEGATION,
        Rule.GUARD_UNKNOWN_MACRO,
        Rule.MIRROR_PARITY,
        Rule.UNUSED_PARAMETER,
        Rule.UNUSED_VARIABLE,
        Rule.WARP_SIZE,
    }
)


def _words(value: object) -> object:
    return [value] if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Mirror(_Part):
    """Two sets of files, or two namespaces, that must offer the same functions."""

    left: str = Field(description="glob of the one side, or `namespace NAME`", examples=["include/vt/cuda/*.h"])
    right: str = Field(description="glob of the other side, or `namespace NAME`", examples=["include/vt/rocm/*.h"])
    complete: bool = Field(True, description="whether a function that one side alone has is a finding")
    ignore: Words = Field((), description="functions that need no twin")


class Environment(_Part):
    """Where the variables that the project reads are documented."""

    documented_in: Words = Field(description="files that document every variable", examples=["docs/environment.md"])
    prefixes: Words = Field((), description="only variables that start so; none: every variable", examples=["ENGINE_"])
    sources: Words = Field((), description="globs of the files that are searched for reads; none: all of them")


class RecordFields(_Part):
    """What a pull request's text must hold."""

    body: str | None = Field(None, description="file that holds the text; else $GREENLANE_PR_BODY names it")
    fields: Words = Field((), description="`Name:` lines that must be there and filled", examples=["Row"])
    row_field: str | None = Field(None, description="the field that names a row of the matrix", examples=["Row"])
    trailers: Words = Field((), description="git trailers that must survive", examples=["Signed-off-by"])


class Suppression(_Part):
    """Findings that are accepted, and why. One that matches nothing is itself a finding."""

    rule: Rule
    file: str = Field(description="glob of paths")
    line: int | None = None
    contains: str | None = Field(None, description="text that the message holds")
    lanes: Words = Field((), description="globs of lane ids; none: every lane")
    why: str = Field(min_length=3)

    @field_validator("why")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a suppression needs a reason")
        return value


class ChecksConfig(_Part):
    """The static checks: what is on, how bad a finding is, and what a project declares about itself."""

    off: tuple[Rule, ...] = Field((), description="rules that don't run", examples=[["guard-doubled"]])
    severity: dict[Rule, Severity] = Field({}, description="severity by rule", examples=[{"env-doc": "note"}])
    exclude: Words = Field((), description="globs of files that no rule looks at", examples=["third_party/**"])
    vendored: Words = Field((), description="globs of files that are read but never judged", examples=["vendor/**"])
    mirrors: tuple[Mirror, ...] = Field((), description="pairs that must offer the same functions")
    environment: Environment | None = None
    record: RecordFields | None = None
    alias_headers: Words = Field(
        (), description="globs of headers that map one vendor's names to another's; none: found by content"
    )
    macros: Words = Field(
        (), description="macros that users set by hand; none of them is a misspelling", examples=[["MY_DEBUG"]]
    )
    suppress: tuple[Suppression, ...] = Field((), description="findings that are accepted, with a reason each")

    def severity_of(self, rule: str) -> Severity:
        known = Rule(rule)
        return self.severity.get(known, "warning" if known in WARNINGS else "error")

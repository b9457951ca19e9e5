"""The model's own chat template, in a sandbox: it came with the file, so it is not trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import RequestError, UnsupportedModel

MAX_SEQUENCE = 1 << 20  # characters or elements that one operator of a template may produce


class ChatTemplate:
    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens)

    @cached_property
    def _template(self) -> jinja2.Template:
        try:
            return _environment().from_string(self.source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise UnsupportedModel(f"the model's chat template can't be compiled: {error}") from None

    def render(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True, **extra: Any) -> str:
        try:
            return self._template.render(
                messages=list(messages),
                add_generation_prompt=add_generation_prompt,
                **{**extra, **self.special_tokens},
            )
        except UnsupportedModel:
            raise
        except Exception as error:  # whatever a template of unknown origin may raise
            raise RequestError(f"the model's chat template refuses these messages: {error}") from None


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, where `'a' * 10 ** 9` is refused too."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*" and (isinstance(left, str | list | tuple) or isinstance(right, str | list | tuple)):
            sequence, count = (left, right) if isinstance(right, int) else (right, left)
            if len(sequence) * count > MAX_SEQUENCE:
                raise jinja2.TemplateRuntimeError("the template builds too long a sequence")
        if operator == "**" and (abs(left) > 1 << 32 or abs(right) > 64):
            raise jinja2.TemplateRuntimeError("the template raises to too high a power")
        if operator == "%" and isinstance(left, str):
            raise jinja2.TemplateRuntimeError("string formatting is not offered to templates")
        return super().call_binop(context, operator, left, right)


def _environment() -> _Sandbox:
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda layout: datetime.now().strftime(layout)
    return environment


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)

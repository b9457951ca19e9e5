"""How the engine is set up: one frozen object, checked when it is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from engine.errors import ArgumentsError

PRECISIONS = ("fast", "reference")
KV_DTYPES = ("auto", "F32", "F16", "BF16")
MIRROR = ("auto", "on", "off")


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    model: str = "smollm2"
    device: str = "cpu"
    precision: str = "fast"
    threads: int = 0  # 0: one per core that may be used
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    block_size: int = 16
    kv_cache_tokens: int | None = None  # None: sized from the model and the memory that is free
    kv_dtype: str = "auto"
    prefix_cache: bool = True
    batch_invariant: bool = False
    attention_backend: str | None = None
    async_device_mirror: str = "auto"
    max_context: int | None = None  # None: the model's own

    def __post_init__(self) -> None:
        for name, high in (("threads", 1024), ("max_num_seqs", 4096), ("max_num_batched_tokens", 1 << 20),
                           ("block_size", 1024)):  # fmt: skip
            self._check_count(name, 0 if name == "threads" else 1, high)
        for name in ("kv_cache_tokens", "max_context"):
            if getattr(self, name) is not None:
                self._check_count(name, 1, 1 << 40)
        for name, choices in (("precision", PRECISIONS), ("kv_dtype", KV_DTYPES), ("async_device_mirror", MIRROR)):
            if getattr(self, name) not in choices:
                raise ArgumentsError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(choices)}")

    def _check_count(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ArgumentsError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")


_VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ENGINE_DEVICE": ("device", str),
    "ENGINE_THREADS": ("threads", int),
    "ENGINE_PRECISION": ("precision", str),
    "ENGINE_ATTENTION_BACKEND": ("attention_backend", str),
    "ENGINE_ASYNC_DEVICE_MIRROR": ("async_device_mirror", str),
}


def make(given: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> EngineConfig:
    """What is given wins over the environment, which wins over the defaults. Unknown names are refused."""
    known = {field.name for field in fields(EngineConfig)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ArgumentsError(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
    values: dict[str, Any] = {}
    for variable, (name, convert) in _VARIABLES.items():
        if environ.get(variable):
            values[name] = _convert(variable, environ[variable], convert)
    return EngineConfig(**{**values, **given})


def _convert(variable: str, text: str, convert: Callable[[str], Any]) -> Any:
    try:
        return convert(text)
    except ValueError:
        raise ArgumentsError(f"{variable}={text!r} is not a whole number; correct or unset it") from None

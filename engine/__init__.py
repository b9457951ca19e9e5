"""A small LLM inference engine. `from engine import LLM, SamplingParams`; start reading at engine/llm.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.errors import EngineError
    from engine.llm import LLM
    from engine.outputs import Completion, RequestOutput
    from engine.sampling_params import SamplingParams

__all__ = ["LLM", "Completion", "EngineError", "RequestOutput", "SamplingParams"]

_HOMES = {
    "LLM": "engine.llm",
    "Completion": "engine.outputs",
    "EngineError": "engine.errors",
    "RequestOutput": "engine.outputs",
    "SamplingParams": "engine.sampling_params",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)

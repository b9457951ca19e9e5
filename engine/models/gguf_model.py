"""A GGUF file's metadata as an Architecture, its tensors as weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError, UnsupportedModel
from engine.models.gguf import GGUFFile, read
from engine.models.spec import ARCHITECTURES, Architecture, ModelSource

# Metadata that changes the computation in a way this engine doesn't know, with the value that changes nothing.
INERT_VALUES = {
    "attention.scale": None,
    "attention.clamp_kqv": 0.0,
    "attention.max_alibi_bias": 0.0,
    "attention.causal": True,
    "attention.logit_softcapping": None,
    "final_logit_softcapping": None,
    "use_parallel_residual": False,
    "embedding_scale": 1.0,
    "residual_scale": 1.0,
    "logit_scale": 1.0,
    "expert_count": 0,
}


def open_model(path: Path) -> ModelSource:
    from engine import _core
    from engine.tokenizer.gguf import tokenizer_from_metadata

    file = read(path)
    architecture = architecture_of(file)
    tokenizer = tokenizer_from_metadata(file.metadata, architecture.vocab_size, path)
    weights = {
        tensor.name: _core.Weight(dtype=tensor.dtype, shape=tensor.shape, data=tensor.data)
        for tensor in file.tensors.values()
    }
    return ModelSource(path, architecture, tokenizer, weights, file.forget_pages)


def architecture_of(file: GGUFFile) -> Architecture:
    reader = Metadata(file.metadata, file.path)
    name = reader.text("general.architecture")
    if name not in ARCHITECTURES:
        raise UnsupportedModel(
            f"{file.path}: architecture {name!r} is not supported; supported are {', '.join(ARCHITECTURES)}"
        )
    reader.refuse_what_changes_the_computation(name)
    architecture = _architecture(reader, name, file)
    architecture.check(file.path)
    architecture.check_tensors({tensor.name: tensor.shape for tensor in file.tensors.values()}, file.path)
    return architecture


def _architecture(reader: Metadata, name: str, file: GGUFFile) -> Architecture:
    heads = reader.count(f"{name}.attention.head_count")
    hidden = reader.count(f"{name}.embedding_length")
    head_dim = reader.count(f"{name}.attention.key_length", hidden // max(heads, 1))
    for key in ("attention.value_length", "rope.dimension_count"):
        if reader.count(f"{name}.{key}", head_dim) != head_dim:
            raise UnsupportedModel(f"{file.path}: {name}.{key} differs from the head size {head_dim}; not supported")
    context = reader.count(f"{name}.context_length")
    window = reader.count(f"{name}.attention.sliding_window", 0)
    return Architecture(
        architecture=name,
        num_layers=reader.count(f"{name}.block_count"),
        hidden_size=hidden,
        intermediate_size=reader.count(f"{name}.feed_forward_length"),
        num_heads=heads,
        num_kv_heads=reader.count(f"{name}.attention.head_count_kv", heads),
        head_dim=head_dim,
        vocab_size=_vocab_size(file),
        # Within its window a sliding-window model computes what a full-attention one does.
        context_length=min(context, window) if window else context,
        rms_norm_eps=reader.number(f"{name}.attention.layer_norm_rms_epsilon"),
        rope_theta=reader.number(f"{name}.rope.freq_base", 10000.0),
        rope_interleaved=name == "llama",
        rope_scaling=_rope_scaling(reader, name),
    )


def _vocab_size(file: GGUFFile) -> int:
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise UnsupportedModel(f"{file.path}: tensor 'token_embd.weight' is missing; the file holds no language model")
    return embedding.shape[0]


def _rope_scaling(reader: Metadata, name: str) -> dict[str, float] | None:
    kind = reader.text(f"{name}.rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind == "linear":
        return {"type": 1, "factor": reader.number(f"{name}.rope.scaling.factor")}
    raise UnsupportedModel(f"{reader.path}: rope scaling {kind!r} is not supported; supported are none and linear")


class Metadata:
    """Typed reads that name the key and the file when the value is absent or absurd."""

    def __init__(self, values: Mapping[str, Any], path: Path) -> None:
        self.values = values
        self.path = path

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise ModelFileError(f"{self.path}: metadata {key!r} is missing; the file is no complete model")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise ModelFileError(f"{self.path}: metadata {key!r} is {str(value)[:60]!r}, not a string")
        return value

    def count(self, key: str, default: int | None = None) -> int:
        value = self._value(key, default)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]  # one entry per layer, all equal
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise ModelFileError(f"{self.path}: metadata {key!r} is {str(value)[:60]}, not a sensible count")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ModelFileError(f"{self.path}: metadata {key!r} is {str(value)[:60]}, not a positive number")
        return float(value)

    def refuse_what_changes_the_computation(self, name: str) -> None:
        for suffix, inert in INERT_VALUES.items():
            value = self.values.get(f"{name}.{suffix}")
            if value is not None and value != inert:
                raise UnsupportedModel(f"{self.path}: {name}.{suffix} = {str(value)[:60]} is not supported")

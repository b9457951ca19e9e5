"""What the engine knows of a model, wherever its file came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UnsupportedModel

if TYPE_CHECKING:
    from engine import _core
    from engine.tokenizer import Tokenizer

ARCHITECTURES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True)
class Architecture:
    """The numbers that fix the computation; the fields of `_core.ModelConfig`."""

    architecture: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    rms_norm_eps: float
    rope_theta: float
    rope_interleaved: bool
    rope_scaling: Mapping[str, float] | None = None

    def check(self, where: Path) -> None:
        """Refuse what no kernel could compute."""
        for name in ("num_layers", "hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim",
                     "vocab_size", "context_length"):  # fmt: skip
            if not 0 < getattr(self, name) < 1 << 31:
                raise UnsupportedModel(f"{where}: {name} is {getattr(self, name)}; the model's metadata is damaged")
        if self.num_heads % self.num_kv_heads:
            raise UnsupportedModel(f"{where}: {self.num_heads} heads can't share {self.num_kv_heads} key-value heads")
        if self.head_dim % 2:
            raise UnsupportedModel(f"{where}: rope needs an even head size, this model has {self.head_dim}")
        if not (0 < self.rms_norm_eps < 1 and 0 < self.rope_theta < float("inf")):
            raise UnsupportedModel(
                f"{where}: rms epsilon {self.rms_norm_eps} or rope base {self.rope_theta} is impossible"
            )

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the architecture needs, by GGUF name. The output head may be missing (tied)."""
        query, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (self.vocab_size, self.hidden_size),
            "output_norm.weight": (self.hidden_size,),
        }
        layer: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (self.hidden_size,),
            "attn_q.weight": (query, self.hidden_size),
            "attn_k.weight": (keys, self.hidden_size),
            "attn_v.weight": (keys, self.hidden_size),
            "attn_output.weight": (self.hidden_size, query),
            "ffn_norm.weight": (self.hidden_size,),
            "ffn_gate.weight": (self.intermediate_size, self.hidden_size),
            "ffn_up.weight": (self.intermediate_size, self.hidden_size),
            "ffn_down.weight": (self.hidden_size, self.intermediate_size),
        }
        if self.architecture == "qwen2":
            layer |= {"attn_q.bias": (query,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
        if self.architecture == "qwen3":
            layer |= {"attn_q_norm.weight": (self.head_dim,), "attn_k_norm.weight": (self.head_dim,)}
        for index in range(self.num_layers):
            shapes |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
        return shapes

    def optional_tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"output.weight": (self.vocab_size, self.hidden_size), "rope_freqs.weight": (self.head_dim // 2,)}

    def check_tensors(self, present: Mapping[str, tuple[int, ...]], where: Path) -> None:
        """A missing, misshapen or unknown tensor would give wrong tokens, so it is refused."""
        if self.num_layers > len(present):
            raise UnsupportedModel(f"{where}: {self.num_layers} layers, but only {len(present)} tensors in the file")
        needed, optional = self.tensor_shapes(), self.optional_tensor_shapes()
        for name, shape in needed.items():
            if name not in present:
                raise UnsupportedModel(f"{where}: tensor {name!r} is missing; {self.architecture} models need it")
            _check_shape(name, present[name], shape, where)
        for name, shape in present.items():
            if name in optional:
                _check_shape(name, shape, optional[name], where)
            elif name not in needed:
                raise UnsupportedModel(
                    f"{where}: tensor {name!r} has no place in a {self.architecture} model as this engine knows it"
                )


def _check_shape(name: str, found: tuple[int, ...], expected: tuple[int, ...], where: Path) -> None:
    if found != expected:
        raise UnsupportedModel(
            f"{where}: tensor {name!r} has shape {list(found)}, the metadata asks for {list(expected)}"
        )


@dataclass(frozen=True)
class ModelSource:
    """An opened model: what it is, its words, its weights, and a way to give its file pages back."""

    path: Path
    architecture: Architecture
    tokenizer: Tokenizer
    weights: Mapping[str, _core.Weight]
    forget_pages: Callable[[], None]

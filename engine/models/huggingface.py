"""A Hugging Face folder: config.json, *.safetensors and the tokenizer's files, brought to GGUF's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import UnsupportedModel
from engine.models.gguf_model import Metadata
from engine.models.safetensors import Tensor, read_folder, read_json
from engine.models.spec import ARCHITECTURES, Architecture, ModelSource

if TYPE_CHECKING:
    from engine import _core

CLASSES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3"}
TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
       "lm_head.weight": "output.weight"}  # fmt: skip
IN_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
LAYER = re.compile(r"model\.layers\.(\d{1,6})\.(.+)")
DERIVED = re.compile(r"rotary_emb\.inv_freq$")  # old files carry what follows from the configuration


def open_model(folder: Path) -> ModelSource:
    from engine.tokenizer.huggingface import tokenizer_from_folder

    config = read_json(folder / "config.json")
    checkpoint = read_folder(folder)
    tensors = gguf_names(checkpoint.tensors, folder, tied=config.get("tie_word_embeddings") is True)
    architecture = architecture_of(config, tensors, folder)
    tokenizer = tokenizer_from_folder(folder, config, architecture.vocab_size)
    weights = {name: _weight(tensor) for name, tensor in tensors.items()}
    return ModelSource(folder, architecture, tokenizer, weights, checkpoint.forget_pages)


def _weight(tensor: Tensor) -> _core.Weight:
    """The core takes norms and biases as float32, as GGUF files have them."""
    from engine import _core

    weight = _core.Weight(dtype=tensor.dtype, shape=tensor.shape, data=tensor.data)
    if len(tensor.shape) > 1 or tensor.dtype == "F32":
        return weight
    return _core.Weight(dtype="F32", shape=tensor.shape, data=_core.dequantize(weight))


def gguf_names(tensors: Mapping[str, Tensor], folder: Path, *, tied: bool) -> dict[str, Tensor]:
    """With tied embeddings a stored head is a copy, and is left out."""
    found = {}
    for name, tensor in tensors.items():
        if DERIVED.search(name) or (tied and name == "lm_head.weight"):
            continue
        layer = LAYER.fullmatch(name)
        renamed = IN_LAYER.get(layer[2]) if layer else TOP.get(name)
        if renamed is None:
            raise UnsupportedModel(f"{folder}: tensor {name[:80]!r} has no place in a model as this engine knows it")
        found[f"blk.{int(layer[1])}.{renamed}" if layer else renamed] = tensor
    return found


def architecture_of(config: Mapping[str, Any], tensors: Mapping[str, Tensor], folder: Path) -> Architecture:
    reader = Metadata(config, folder / "config.json")
    name = _architecture_name(config, folder)
    heads = reader.count("num_attention_heads")
    hidden = reader.count("hidden_size")
    context = reader.count("max_position_embeddings")
    window = reader.count("sliding_window", 0) if config.get("use_sliding_window") else 0
    _refuse_what_changes_the_computation(config, folder)
    embedding = tensors.get("token_embd.weight")
    architecture = Architecture(
        architecture=name,
        num_layers=reader.count("num_hidden_layers"),
        hidden_size=hidden,
        intermediate_size=reader.count("intermediate_size"),
        num_heads=heads,
        num_kv_heads=reader.count("num_key_value_heads", heads),
        head_dim=reader.count("head_dim", hidden // max(heads, 1)),
        vocab_size=embedding.shape[0] if embedding else reader.count("vocab_size"),
        context_length=min(context, window) if window else context,
        rms_norm_eps=reader.number("rms_norm_eps"),
        rope_theta=_rope_theta(config, folder),
        rope_interleaved=False,
        rope_scaling=_rope_scaling(config, folder),
    )
    architecture.check(folder)
    architecture.check_tensors({name: tensor.shape for name, tensor in tensors.items()}, folder)
    return architecture


def _architecture_name(config: Mapping[str, Any], folder: Path) -> str:
    classes = config.get("architectures")
    named = classes[0] if isinstance(classes, list) and classes else config.get("model_type")
    name = CLASSES.get(str(named), str(config.get("model_type")) if named == config.get("model_type") else None)
    if name not in ARCHITECTURES:
        raise UnsupportedModel(
            f"{folder}: architecture {str(named)[:60]!r} is not supported; supported are {', '.join(CLASSES)}"
        )
    return name


def _refuse_what_changes_the_computation(config: Mapping[str, Any], folder: Path) -> None:
    for key, usual in (("hidden_act", "silu"), ("mlp_bias", False), ("quantization_config", None)):
        if config.get(key, usual) != usual:
            raise UnsupportedModel(f"{folder}: {key} = {str(config[key])[:60]} in config.json is not supported")


def _rope_parameters(config: Mapping[str, Any]) -> dict[str, Any]:
    """Older files have `rope_scaling` beside `rope_theta`, newer ones `rope_parameters` with both."""
    for key in ("rope_parameters", "rope_scaling"):
        if isinstance(config.get(key), dict):
            return dict(config[key])
    return {}


def _rope_theta(config: Mapping[str, Any], folder: Path) -> float:
    parameters = _rope_parameters(config)
    source = parameters if "rope_theta" in parameters else config
    return Metadata(source, folder / "config.json").number("rope_theta", 10000.0)


def _rope_scaling(config: Mapping[str, Any], folder: Path) -> dict[str, float] | None:
    parameters = _rope_parameters(config)
    reader = Metadata(parameters, folder / "config.json")
    kind = reader.text("rope_type", reader.text("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return {"type": 1, "factor": reader.number("factor")}
    if kind == "llama3":
        names = ("factor", "low_freq_factor", "high_freq_factor")
        context = reader.number("original_max_position_embeddings")
        return {"type": 2, **{name: reader.number(name) for name in names}, "original_context_length": context}
    raise UnsupportedModel(f"{folder}: rope scaling {kind!r} is not supported; supported are linear and llama3")

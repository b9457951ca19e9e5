"""The oracle itself against a second implementation: Hugging Face models with the same random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle needs PyTorch: nox -s oracle")
transformers = pytest.importorskip("transformers", reason="the second implementation is transformers: nox -s oracle")

from tests.engine.models.tiny import Shape, vocabulary, write_gguf  # noqa: E402
from tests.oracle import checkpoint, golden  # noqa: E402
from tests.oracle.transformer import Transformer, halves, shape_of  # noqa: E402

SHAPES = {
    "llama": Shape(),
    "llama-wide-heads": Shape(hidden=96, heads=3, kv_heads=1, head_dim=32, ffn=160),
    "qwen2": Shape(architecture="qwen2", rope_theta=1e6),
    "qwen2-tied": Shape(architecture="qwen2", tied=True, heads=2, kv_heads=2, head_dim=32),
    "qwen3": Shape(architecture="qwen3", rope_theta=1e6),
    "qwen3-heads-wider-than-hidden": Shape(architecture="qwen3", heads=8, kv_heads=2, head_dim=32, tied=True),
}
CLASSES = {"llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen2": ("Qwen2Config", "Qwen2ForCausalLM")}
CLASSES["qwen3"] = ("Qwen3Config", "Qwen3ForCausalLM")
NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
}
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
PROMPT = [17, 4, 200, 91, 5, 5, 33, 260, 128, 7]


def hugging_face(shape: Shape, loaded: checkpoint.Checkpoint) -> Any:
    config_name, class_name = CLASSES[shape.architecture]
    config = getattr(transformers, config_name)(
        vocab_size=len(vocabulary()[0]),
        hidden_size=shape.hidden,
        intermediate_size=shape.ffn,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.context,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=shape.tied,
        pad_token_id=None,
        attn_implementation="eager",
    )
    model = getattr(transformers, class_name)(config).eval()
    state = {hugging_face_name(name): tensor for name, tensor in straight(shape, loaded.tensors).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= ({"lm_head.weight"} if shape.tied else set())
    return model


def straight(shape: Shape, tensors: dict[str, Any]) -> dict[str, Any]:
    heads = {"attn_q.weight": shape.heads, "attn_k.weight": shape.kv_heads}
    if shape.architecture != "llama":
        return tensors
    return {n: halves(t, heads[e]) if (e := n.split(".", 2)[-1]) in heads else t for n, t in tensors.items()}


def hugging_face_name(name: str) -> str:
    if name in TOP or name == "output.weight":
        return TOP.get(name, "lm_head.weight")
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{kind}"


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_hugging_face(name: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", SHAPES[name])
    loaded = checkpoint.load(tmp_path / "m.gguf")
    with torch.inference_mode():
        expected = hugging_face(SHAPES[name], loaded)(torch.tensor([PROMPT])).logits[0]
    torch.testing.assert_close(Transformer(loaded).forward(PROMPT), expected, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_a_cached_step_gives_what_the_whole_sequence_gives(name: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", SHAPES[name])
    model = Transformer(checkpoint.load(tmp_path / "m.gguf"))
    whole = model.forward(PROMPT)
    model.reset()
    pieces = [model.forward(PROMPT[:3]), *(model.forward([token]) for token in PROMPT[3:])]
    torch.testing.assert_close(torch.cat(pieces), whole, atol=1e-4, rtol=1e-4)


def test_score_gives_no_gap_to_the_best_tokens_and_one_to_any_other(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", SHAPES["qwen3"])
    model = Transformer(checkpoint.load(tmp_path / "m.gguf"))
    best = golden.decode(model, PROMPT, 8)["token_ids"]
    assert golden.score(model, PROMPT, best) == [0.0] * 8
    assert golden.score(model, PROMPT, [*best[:7], (best[7] + 1) % 260])[7] > 0


def test_the_permutation_of_llama_rows_is_undone() -> None:
    rows = torch.arange(8.0)[:, None]  # two heads of four: pairs (0, 1) and (2, 3) of each become (0, 2) and (1, 3)
    assert halves(rows, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_the_shape_comes_from_the_file(tmp_path: Path) -> None:
    shape = SHAPES["qwen3-heads-wider-than-hidden"]
    write_gguf(tmp_path / "m.gguf", shape)
    found = shape_of(checkpoint.load(tmp_path / "m.gguf"))
    assert (found.head_dim, found.heads, found.kv_heads, found.layers) == (32, 8, 2, 2)

"""Llama, Qwen2 and Qwen3 on small random models: the engine's probabilities against NumPy's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import LLM, SamplingParams
from tests.engine.models.numpy_model import log_softmax, logits
from tests.engine.models.tiny import Shape, write_gguf

SHAPES = {
    "llama": Shape(),
    "llama-tied-rope-factors": Shape(tied=True, rope_factors=True),
    "llama-wide-heads": Shape(hidden=96, heads=3, kv_heads=1, head_dim=32, ffn=160),
    "qwen2": Shape(architecture="qwen2", rope_theta=1e6),
    "qwen2-tied": Shape(architecture="qwen2", tied=True, heads=2, kv_heads=2, head_dim=32),
    "qwen3": Shape(architecture="qwen3", rope_theta=1e6),
    "qwen3-heads-wider-than-hidden": Shape(architecture="qwen3", heads=8, kv_heads=2, head_dim=32, tied=True),
}
PROMPT = list(np.random.default_rng(5).integers(0, 260, 40).tolist())


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "Q8_0", "Q4_1"])
@pytest.mark.parametrize("name", SHAPES)
def test_teacher_forced_probabilities_are_numpys(name: str, dtype: str, tmp_path: Path) -> None:
    shape, path = SHAPES[name], tmp_path / "m.gguf"
    weights = write_gguf(path, shape, dtype=dtype)
    expected = log_softmax(logits(shape, weights, PROMPT, interleaved=shape.architecture == "llama"))
    llm = LLM(str(path), precision="reference", threads=2, kv_cache_tokens=512)
    scores = llm.score(PROMPT[:1], PROMPT[1:])
    given = expected[np.arange(len(PROMPT) - 1), PROMPT[1:]]
    np.testing.assert_allclose(scores.logprobs, given, atol=2e-4, rtol=2e-4)
    np.testing.assert_allclose([best.logprob for best in scores.best], expected[:-1].max(axis=-1), atol=2e-4, rtol=2e-4)
    assert [best.token_id for best in scores.best] == expected[:-1].argmax(axis=-1).tolist()


@pytest.mark.parametrize("name", SHAPES)
def test_greedy_tokens_are_numpys(name: str, tmp_path: Path) -> None:
    shape, path = SHAPES[name], tmp_path / "m.gguf"
    weights = write_gguf(path, shape)
    tokens = PROMPT[:7]
    for _ in range(12):
        tokens.append(int(logits(shape, weights, tokens, interleaved=shape.architecture == "llama")[-1].argmax()))
    llm = LLM(str(path), precision="reference", threads=1, kv_cache_tokens=512)
    output = llm.generate([PROMPT[:7]], SamplingParams(max_tokens=12, ignore_eos=True))[0]
    assert output.token_ids == tokens[7:]

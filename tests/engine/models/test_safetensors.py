"""Hugging Face folders: small random models written here, against NumPy; damaged and hostile ones are refused."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from engine import LLM, SamplingParams
from engine.errors import EngineError
from engine.models.huggingface import IN_LAYER, TOP
from engine.models.locate import open_model
from tests.engine.models.numpy_model import log_softmax, logits
from tests.engine.models.tiny import CHAT_TEMPLATE, SPECIAL, Shape, vocabulary, weights

CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
PROMPT = list(range(3, 40))


def hugging_face_name(name: str) -> str:
    backwards = {ours: theirs for theirs, ours in (TOP | IN_LAYER).items()}
    if not name.startswith("blk."):
        return backwards[name]
    _, layer, rest = name.split(".", 2)
    return f"model.layers.{layer}.{backwards[rest]}"


def stored(value: NDArray[np.float32], dtype: str) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """As written, and what that is as float32."""
    if dtype == "BF16":
        bits = (value.view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32)
    kept = value.astype(np.float16 if dtype == "F16" else np.float32)
    return kept, kept.astype(np.float32)


def write_safetensors(path: Path, tensors: dict[str, NDArray[Any]], dtype: str) -> None:
    """By hand, since NumPy has no bfloat16."""
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.tobytes()
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def configuration(shape: Shape) -> dict[str, Any]:
    return {
        "architectures": [CLASSES[shape.architecture]], "model_type": shape.architecture, "hidden_act": "silu",
        "hidden_size": shape.hidden, "intermediate_size": shape.ffn, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim,
        "max_position_embeddings": shape.context, "rms_norm_eps": 1e-5, "rope_theta": shape.rope_theta,
        "tie_word_embeddings": shape.tied, "vocab_size": len(vocabulary()[0]), "eos_token_id": 264,
    }  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    tokens, _, merges = vocabulary()
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    backend = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    backend.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|begin|>", "eos_token": {"content": "<|end|>"}, "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def write_folder(folder: Path, shape: Shape, dtype: str = "F32", *, shards: int = 1, **config: Any) -> dict[str, Any]:
    """Returns the weights as float32, by GGUF name."""
    kept, files = {}, [dict[str, NDArray[Any]]() for _ in range(shards)]
    for index, (name, value) in enumerate(weights(shape).items()):
        raw, kept[name] = stored(value, dtype)
        files[index % shards][hugging_face_name(name)] = raw
    if shards == 1:
        write_safetensors(folder / "model.safetensors", files[0], dtype)
    else:
        places = {}
        for index, tensors in enumerate(files):
            write_safetensors(folder / f"model-{index}.safetensors", tensors, dtype)
            places |= dict.fromkeys(tensors, f"model-{index}.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text(json.dumps(configuration(shape) | config))
    write_tokenizer(folder)
    return kept


SHAPES = [
    Shape(),
    Shape(tied=True),
    Shape(architecture="qwen2", rope_theta=1e6),
    Shape(architecture="qwen3", head_dim=32),
]


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shape", SHAPES, ids=["llama", "llama-tied", "qwen2", "qwen3"])
def test_probabilities_are_numpys(shape: Shape, dtype: str, tmp_path: Path) -> None:
    kept = write_folder(tmp_path, shape, dtype, shards=2 if dtype == "BF16" else 1)
    expected = log_softmax(logits(shape, kept, PROMPT, interleaved=False))
    llm = LLM(str(tmp_path), precision="reference", threads=1, kv_cache_tokens=256)
    scores = llm.score(PROMPT[:1], PROMPT[1:])
    np.testing.assert_allclose(scores.logprobs, expected[np.arange(len(PROMPT) - 1), PROMPT[1:]], atol=2e-4, rtol=2e-4)


def test_llama3_rope_scaling_is_applied(tmp_path: Path) -> None:
    """Wavelengths beyond the old context are slowed down by the factor, short ones stay."""
    shape = Shape()
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    kept = write_folder(tmp_path, shape, rope_scaling=scaling | {"original_max_position_embeddings": 64})
    frequency = shape.rope_theta ** (-np.arange(8) / 8)
    wavelength = 2 * np.pi / frequency
    smooth = np.clip((64 / wavelength - 1) / 3, 0, 1)
    factors = 1 / ((1 - smooth) / 8 + smooth)
    expected = log_softmax(logits(shape, kept | {"rope_freqs.weight": factors}, PROMPT, interleaved=False))
    scores = LLM(str(tmp_path), precision="reference", threads=1, kv_cache_tokens=256).score(PROMPT[:1], PROMPT[1:])
    np.testing.assert_allclose(scores.logprobs, expected[np.arange(len(PROMPT) - 1), PROMPT[1:]], atol=2e-4, rtol=2e-4)


def test_the_safetensors_package_reads_what_the_tests_write(tmp_path: Path) -> None:
    write_folder(tmp_path, Shape())
    theirs = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert theirs["model.norm.weight"].tobytes() == weights(Shape())["output_norm.weight"].tobytes()


def test_tokenizer_stops_and_chat_template_come_from_the_files(tmp_path: Path) -> None:
    write_folder(tmp_path, Shape())
    source = open_model(tmp_path)
    words = source.tokenizer
    assert words.encode("hello wor<|end|>") == [259, 262, 264]
    assert words.decode([259, 262]) == "hello wor"
    assert words.stop_ids == {264} and words.bos_id == 263 and words.eos_id == 264
    assert words.chat_template is not None
    assert words.chat_template.render([{"role": "user", "content": "hi"}]) == "<|user|>hi"
    output = LLM(str(tmp_path), threads=1, kv_cache_tokens=64).chat(
        [{"role": "user", "content": "x"}], SamplingParams()
    )
    assert output.token_ids


def test_a_head_stored_beside_tied_embeddings_is_a_copy(tmp_path: Path) -> None:
    write_folder(tmp_path, replace(Shape(), tied=False), tie_word_embeddings=True)
    assert "output.weight" not in open_model(tmp_path).weights


def refusal(folder: Path) -> str:
    with pytest.raises(EngineError) as caught:
        open_model(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)
    return str(caught.value)


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"architectures": ["MixtralForCausalLM"]}, "MixtralForCausalLM"),
        ({"hidden_act": "gelu"}, "hidden_act = gelu"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "'yarn'"),
        ({"num_hidden_layers": -1}, "not a sensible count"),
        ({"num_hidden_layers": 10**12}, "not a sensible count"),
        ({"num_hidden_layers": 3}, "is missing"),
        ({"num_attention_heads": 0}, "num_heads is 0"),
        ({"hidden_size": 65}, "has shape"),
        ({"rms_norm_eps": "small"}, "not a positive number"),
    ],
)
def test_a_configuration_that_can_not_be_is_named(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    write_folder(tmp_path, Shape(), **change)
    assert says in refusal(tmp_path)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    assert "config.json: missing" in refusal(tmp_path)
    write_folder(tmp_path, Shape())
    (tmp_path / "tokenizer.json").write_text("{")
    assert "tokenizer.json: not valid JSON" in refusal(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "holds neither model.safetensors nor" in refusal(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../etc/passwd"}}')
    assert "does not map tensors to files of this folder" in refusal(tmp_path)


def test_a_wordpiece_tokenizer_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, Shape())
    rewrite(tmp_path / "tokenizer.json", lambda document: document.update(decoder={"type": "WordPiece"}))
    assert "decoder 'WordPiece' is not supported" in refusal(tmp_path)


def test_mutated_headers_are_refused_in_one_line(tmp_path: Path) -> None:
    write_folder(tmp_path, Shape(layers=1))
    path = tmp_path / "model.safetensors"
    original, rng, refused = path.read_bytes(), random.Random(6), set()
    end = 8 + int.from_bytes(original[:8], "little")
    for _ in range(600):
        changed = bytearray(original)
        for _ in range(rng.choice([1, 1, 2, 6])):
            at = rng.randrange(end)
            changed[at] = rng.choice([rng.randrange(256), ord(rng.choice('0123456789{}[]",:-'))])
        path.write_bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.1 else changed)
        try:
            open_model(tmp_path)
        except EngineError as error:
            assert "\n" not in str(error)
            refused.add(str(error))
    assert len(refused) > 50

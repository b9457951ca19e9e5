"""What the core refuses, it refuses at once, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine._core as core


def test_backends_and_devices_are_listed() -> None:
    assert "cpu" in core.backends()
    (device,) = core.devices("cpu")
    assert device.total_memory >= device.free_memory > 0
    assert device.capabilities.batch_invariant
    assert not device.capabilities.async_sampled_token_readback
    assert "reference" in core.attention_backends("cpu")


@pytest.mark.parametrize("call", [core.devices, core.attention_backends, lambda name: core.run_op(name, "matmul")])
def test_an_unknown_backend_is_named_with_those_there_are(call: Any) -> None:
    with pytest.raises(core.CoreError, match=r"no backend 'tpu' in this build; it has .*cpu"):
        call("tpu")


@pytest.mark.parametrize("name", ["combine", "scatter_last_sampled", "apply_last_sampled_ops"])
def test_the_cpu_holds_none_of_the_mirror(name: str) -> None:
    with pytest.raises(core.CoreError, match=f"backend 'cpu' has no op '{name}'"):
        core.run_op("cpu", name)


def test_an_op_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(core.CoreError, match=r"no op 'matmull'; there are .*matmul"):
        core.run_op("cpu", "matmull")


def test_a_missing_and_an_unknown_argument_of_an_op_are_named() -> None:
    with pytest.raises(ValueError, match="argument 'gate_up' is missing"):
        core.run_op("cpu", "silu_mul")
    with pytest.raises(ValueError, match="unknown argument 'gateup'"):
        core.run_op("cpu", "silu_mul", gate_up=np.ones((1, 2), np.float32), gateup=1)


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("cuda9", core.CoreError, "no backend 'cuda9'"),
        ("cpu:1", core.CoreError, "no device 'cpu:1'"),
        ("cpu:x", ValueError, "backend:index"),
        ("cpu:-1", ValueError, "backend:index"),
        ("", core.CoreError, "no backend ''"),
    ],
)
def test_a_device_that_is_not_there_is_named(transformer: Any, device: str, error: type, message: str) -> None:
    small = transformer("llama")
    with pytest.raises(error, match=message):
        core.Model(device=device, config=small.config(), weights=small.weights)


@pytest.mark.parametrize("name", ["blk.1.ffn_up.weight", "token_embd.weight", "blk.0.attn_q_norm.weight"])
def test_a_missing_tensor_is_named(transformer: Any, name: str) -> None:
    small = transformer("qwen3")
    del small.weights[name]
    with pytest.raises(core.CoreError, match=f"'{name}' is missing"):
        small.model()


def test_a_tensor_of_the_wrong_shape_is_named_with_both_shapes(transformer: Any) -> None:
    small = transformer("llama")
    small.weights["blk.0.attn_k.weight"] = small.weights["blk.0.attn_q.weight"]
    with pytest.raises(core.CoreError, match=r"'blk.0.attn_k.weight' has shape \(64, 64\).* \(32, 64\)"):
        small.model()


def test_a_tensor_that_nobody_computes_with_is_refused(transformer: Any) -> None:
    small = transformer("llama")
    small.weights["blk.0.attn_q.bias"] = core.Weight(dtype="F32", shape=(64,), data=b"\0" * 256)
    with pytest.raises(core.CoreError, match=r"'blk.0.attn_q.bias' is not part of .* 'llama'"):
        small.model()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 0}, "num_layers"),
        ({"num_layers": -3}, "num_layers"),
        ({"hidden_size": 2**40}, "hidden_size"),
        ({"num_kv_heads": 3}, "multiple of num_kv_heads"),
        ({"head_dim": 15}, "even"),
        ({"num_heads": 2**29, "head_dim": 2**29}, "num_heads"),
        ({"rms_norm_eps": 0.0}, "rms_norm_eps"),
        ({"rope_theta": float("nan")}, "rope_theta"),
        ({"vocab_size": 0}, "vocab_size"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_a_value_error(
    transformer: Any, changes: dict[str, Any], message: str
) -> None:
    small = transformer("llama")
    small.sizes.update(changes)
    with pytest.raises(ValueError, match=message):
        small.config()


def test_an_unsupported_architecture_is_named_with_those_supported(transformer: Any) -> None:
    small = transformer("llama")
    small.architecture = "mamba"
    with pytest.raises(core.CoreError, match=r"'mamba'; there are llama, qwen2, qwen3"):
        small.config()


def test_unknown_arguments_are_type_errors(transformer: Any) -> None:
    with pytest.raises(TypeError):
        core.Sampling(temprature=1.0)
    with pytest.raises(TypeError):
        core.ModelConfig(layers=3)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1.0}, {"temperature": float("inf")}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5},
        {"min_p": -0.1}, {"min_p": 2.0}, {"repetition_penalty": 0.0}, {"presence_penalty": float("nan")},
        {"top_logprobs": 21}, {"logit_bias": {3: float("nan")}},
    ],
)  # fmt: skip
def test_impossible_sampling_is_a_value_error(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=name):
        core.Sampling(**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_blocks": 0}, ValueError, "num_blocks"),
        ({"block_size": 0}, ValueError, "block_size"),
        ({"max_num_seqs": -1}, ValueError, "max_num_seqs"),
        ({"max_num_batched_tokens": 0}, ValueError, "max_num_batched_tokens"),
        ({"kv_dtype": "F8"}, ValueError, "kv_dtype"),
        ({"attention_backend": "flash"}, core.CoreError, "no attention backend 'flash'; it has .*reference"),
        ({"async_device_mirror": "maybe"}, ValueError, "auto, on or off"),
        ({"async_device_mirror": "on"}, core.CoreError, "does not support"),
        ({"num_blocks": 2**30, "block_size": 1024}, MemoryError, r"at most \d+ tokens fit"),
    ],
)
def test_a_runner_that_cannot_be_says_why(transformer: Any, options: dict[str, Any], error: type, message: str) -> None:
    model = transformer("llama").model()
    with pytest.raises(error, match=message):
        core.Runner(model, **{"num_blocks": 8, **options})

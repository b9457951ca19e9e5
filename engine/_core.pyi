"""The compiled core, as Python sees it. This file is the contract between csrc/bindings and the Python control plane.

Arrays are NumPy arrays, C-contiguous unless said otherwise. Errors: `ValueError` for bad arguments, `CoreError` for
what the core refuses (unknown backend, missing op, unsupported type), `MemoryError` when memory runs out. Every call
that computes releases the GIL.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class CoreError(RuntimeError): ...

class Capabilities:
    async_sampled_token_readback: bool
    graph_capture: bool
    batch_invariant: bool  # ids don't depend on batch size or chunking without asking for it
    unified_memory: bool

class DeviceInfo:
    backend: str  # "cpu", "cuda", "rocm"
    index: int
    name: str
    arch: str  # "x86-64-avx512vnni", "sm_90", "gfx1100"
    driver: str  # "" where there is none
    total_memory: int  # bytes
    free_memory: int  # bytes, now
    capabilities: Capabilities

def backends() -> list[str]: ...  # compiled into this build, in folder-name order
def devices(backend: str) -> list[DeviceInfo]: ...  # CoreError names the known backends
def attention_backends(backend: str) -> list[str]: ...  # by falling priority

class Weight:
    """A tensor of the model file. `data` is any read-only buffer (an mmap slice); it is kept alive as long as needed.

    dtype: "F32" "F16" "BF16" "Q4_0" "Q4_1" "Q5_0" "Q5_1" "Q8_0" "Q4_K" "Q5_K" "Q6_K".
    shape: outermost first, so a matrix is (rows = outputs, cols = inputs); rows are contiguous.
    """

    def __init__(self, *, dtype: str, shape: Sequence[int], data: Any) -> None: ...
    dtype: str
    shape: tuple[int, ...]
    nbytes: int

def dequantize(weight: Weight) -> NDArray[np.float32]: ...  # by the CPU reference

class ModelConfig:
    """Keyword arguments only; unknown ones raise TypeError."""

    def __init__(
        self,
        *,
        architecture: str,  # "llama", "qwen2", "qwen3"
        num_layers: int,
        hidden_size: int,
        intermediate_size: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        vocab_size: int,
        context_length: int,
        rms_norm_eps: float,
        rope_theta: float,
        rope_interleaved: bool,  # pairs (0,1),(2,3).. as GGUF stores llama; else halves (i, i + head_dim / 2)
        rope_scaling: Mapping[str, float] | None = None,  # {"type": 0 none | 1 linear | 2 llama3, "factor": ...}
    ) -> None: ...

class Model:
    """Weights on a device. Tensor names are GGUF's: token_embd.weight, output_norm.weight, output.weight (absent when
    tied), blk.N.{attn_norm,attn_q,attn_k,attn_v,attn_output,ffn_norm,ffn_gate,ffn_up,ffn_down}.weight,
    blk.N.attn_{q,k,v}.bias (qwen2), blk.N.attn_{q,k}_norm.weight (qwen3), rope_freqs.weight (optional).

    precision "reference": weights dequantised to float32, float32 everywhere. "fast": quantised weights, the backend's
    best kernels. A missing tensor or op, or a wrong shape, is a CoreError that names it.
    """

    def __init__(
        self,
        *,
        device: str,  # "cpu", "cuda", "cuda:0", "rocm"
        config: ModelConfig,
        weights: Mapping[str, Weight],
        precision: str = "fast",
        threads: int = 0,  # CPU only; 0: one per core that may be used
    ) -> None: ...
    device: DeviceInfo
    config: ModelConfig
    precision: str
    threads: int
    weight_bytes: int  # what the weights take on the device
    huge_pages: bool  # repacked weights lie in huge pages

class Sampling:
    """How one request samples. temperature 0 is greedy: the largest logit, the lowest id on a tie.

    Order: logit_bias, allowed mask, repetition (prompt and output), presence and frequency (output), temperature,
    top_k, top_p, min_p, then one draw from a counter-based generator keyed by (seed, index of the output token).
    """

    def __init__(
        self,
        *,
        temperature: float = 0.0,
        top_k: int = 0,  # 0: off
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        seed: int = 0,  # uint64
        logit_bias: Mapping[int, float] | None = None,
        top_logprobs: int = 0,  # up to 20 beside the chosen token and the runner-up
        prompt_logprobs: bool = False,
    ) -> None: ...

class PromptLogprobs:
    """Teacher forcing: entry i speaks of prompt position `start + i` given everything before it."""

    row: int
    start: int  # at least 1
    logprobs: NDArray[np.float32]  # (n,) of the token that stands there
    best_ids: NDArray[np.int32]  # (n,)
    best_logprobs: NDArray[np.float32]  # (n,)
    runner_up_ids: NDArray[np.int32]  # (n,) second best
    runner_up_logprobs: NDArray[np.float32]  # (n,)

class StepOutput:
    """One entry per scheduled row that sampled, in the order scheduled."""

    rows: NDArray[np.int32]  # (n,)
    token_ids: NDArray[np.int64]  # (n,)
    logprobs: NDArray[np.float32]  # (n,) of the chosen token, from the raw logits (before any processing)
    runner_up_ids: NDArray[np.int32]  # (n,) best raw token that is not the chosen one
    runner_up_logprobs: NDArray[np.float32]  # (n,)
    top_ids: list[NDArray[np.int32]]  # per row (top_logprobs,), best first; empty where not asked for
    top_logprobs: list[NDArray[np.float32]]
    prompt_logprobs: list[PromptLogprobs]

class PendingStep:
    def done(self) -> bool: ...
    def wait(self) -> StepOutput: ...  # raises what the step raised

class Runner:
    """The model, a paged KV cache and the persistent batch.

    A row is a slot 0..max_num_seqs-1 that holds a request's tokens, sampling state and block table from `add` until
    `remove`. A step that ends at the row's last known token samples the next one and appends it to the row itself;
    with the async device mirror that token may be known on the device only when the next step is launched.
    """

    def __init__(
        self,
        model: Model,
        *,
        num_blocks: int,
        block_size: int = 16,  # tokens
        max_num_seqs: int = 64,
        max_num_batched_tokens: int = 512,
        kv_dtype: str = "auto",  # "auto" (F32 in reference precision, else the backend's choice), "F32", "F16", "BF16"
        attention_backend: str | None = None,  # None: highest priority
        batch_invariant: bool = False,
        async_device_mirror: str = "auto",  # "auto", "on", "off"; "on" where unsupported is a CoreError
    ) -> None: ...
    kv_bytes_per_token: int
    kv_bytes: int
    mirror: bool
    attention_backend: str

    def add(self, row: int, token_ids: NDArray[np.int32], sampling: Sampling, num_prompt_tokens: int) -> None:
        """`token_ids` is the prompt, plus outputs so far when a preempted request comes back."""
    def remove(self, row: int) -> None: ...
    def set_blocks(self, row: int, first: int, block_ids: NDArray[np.int32]) -> None:
        """Block-table entries `first`.. of the row: block b of a row holds its tokens b * block_size and on."""
    def copy_blocks(self, source: NDArray[np.int32], target: NDArray[np.int32]) -> None: ...
    def launch(
        self,
        rows: NDArray[np.int32],  # (n,) distinct
        num_computed: NDArray[np.int32],  # (n,) tokens of the row already in its KV blocks
        num_tokens: NDArray[np.int32],  # (n,) tokens to compute now
        allowed: Mapping[int, NDArray[np.uint32]] | None = None,  # row -> bit mask over the vocabulary, 1 = allowed
    ) -> PendingStep: ...
    def read_kv(self, layer: int, block: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """For tests: keys and values of one block, (block_size, num_kv_heads, head_dim)."""

def kernel_launches() -> dict[str, int]: ...  # by kernel or op name, since the process started or the last reset
def reset_kernel_launches() -> None: ...
def run_op(backend: str, name: str, **arguments: Any) -> Any:
    """For tests: one op of a backend's table on NumPy arrays; docs in csrc/bindings/ops.cpp."""

"""From a model's file to a model and a runner on the device, with an error that says what to do where that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.errors import CoreMissing, DeviceFailed, KVCacheTooSmall, UnsupportedModel
from engine.kv_cache import tokens_to_hold
from engine.models.locate import locate, open_model

if TYPE_CHECKING:
    from engine import _core
    from engine.models.spec import ModelSource

FORGET_EVERY = 0.01  # seconds


def open_source(config: EngineConfig) -> ModelSource:
    try:
        import engine._core  # noqa: F401
    except ImportError as error:
        raise CoreMissing(
            f"the engine's compiled core is missing ({error}); "
            "install it with ENGINE_BACKENDS=cpu pip install '.[engine]', or run nox -s engine"
        ) from None
    return open_model(locate(config.model))


def load_model(source: ModelSource, config: EngineConfig) -> _core.Model:
    from engine import _core

    try:
        with _forgetting_pages(source):
            return _core.Model(
                device=config.device,
                config=_core.ModelConfig(**dataclasses.asdict(source.architecture)),
                weights=source.weights,
                precision=config.precision,
                threads=config.threads,
            )
    except _core.CoreError as error:
        raise UnsupportedModel(f"{source.path}: {error}") from None
    except MemoryError:
        raise DeviceFailed(
            f"{source.path}: out of memory for the weights on {config.device}; use a smaller model"
        ) from None


@contextlib.contextmanager
def _forgetting_pages(source: ModelSource) -> Iterator[None]:
    """While the core copies the weights, let go of the file's pages again and again: else file and copy are both
    resident at the end, and the peak is twice what is needed. The core loads without the interpreter's lock.
    """
    done = threading.Event()

    def forget() -> None:
        while not done.wait(FORGET_EVERY):
            source.forget_pages()

    thread = threading.Thread(target=forget, name="forget-pages")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        source.forget_pages()


def make_runner(model: _core.Model, config: EngineConfig, context: int) -> _core.Runner:
    from engine import _core

    probe = _runner(model, config, num_blocks=1)
    bytes_per_token = probe.kv_bytes_per_token
    del probe
    device = next(d for d in _core.devices(model.device.backend) if d.index == model.device.index)
    tokens = tokens_to_hold(
        config,
        context=context,
        bytes_per_token=bytes_per_token,
        free_memory=device.free_memory,
        on_cpu=device.backend == "cpu",
    )
    try:
        return _runner(model, config, num_blocks=-(-tokens // config.block_size))
    except MemoryError:
        raise KVCacheTooSmall(
            f"out of memory for a KV cache of {tokens} tokens ({tokens * bytes_per_token / 1e6:.0f} MB); "
            f"{device.free_memory // bytes_per_token} tokens would fit at most; lower --kv-cache-tokens"
        ) from None


def _runner(model: _core.Model, config: EngineConfig, *, num_blocks: int) -> _core.Runner:
    from engine import _core

    try:
        return _core.Runner(
            model,
            num_blocks=num_blocks,
            block_size=config.block_size,
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            kv_dtype=config.kv_dtype,
            attention_backend=config.attention_backend,
            batch_invariant=config.batch_invariant,
            async_device_mirror=config.async_device_mirror,
        )
    except (_core.CoreError, ValueError) as error:
        raise UnsupportedModel(f"the core refuses this configuration: {error}") from None

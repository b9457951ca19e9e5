"""How many tokens the KV cache gets, from what is asked for and what memory is free."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.errors import KVCacheTooSmall

# Without a wish: room for some full contexts, but no more than a part of the free memory.
DEFAULT_CONTEXTS = 4
CPU_SHARE, DEVICE_SHARE = 0.5, 0.9


def tokens_to_hold(config: EngineConfig, *, context: int, bytes_per_token: int, free_memory: int, on_cpu: bool) -> int:
    fitting = int(free_memory * (CPU_SHARE if on_cpu else DEVICE_SHARE)) // bytes_per_token
    if config.kv_cache_tokens is not None:
        most = free_memory // bytes_per_token
        if config.kv_cache_tokens > most:
            raise _too_small(config.kv_cache_tokens, most, bytes_per_token, free_memory)
        return config.kv_cache_tokens
    wanted = context * min(config.max_num_seqs, DEFAULT_CONTEXTS if on_cpu else config.max_num_seqs)
    if fitting < config.block_size:
        raise _too_small(context, fitting, bytes_per_token, free_memory)
    return min(wanted, fitting)


def _too_small(wanted: int, fitting: int, bytes_per_token: int, free_memory: int) -> KVCacheTooSmall:
    return KVCacheTooSmall(
        f"out of memory for the KV cache: {wanted} tokens need {wanted * bytes_per_token / 1e6:.0f} MB, "
        f"{free_memory / 1e6:.0f} MB are free, in which {fitting} tokens would fit; lower --kv-cache-tokens"
    )

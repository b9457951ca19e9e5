"""The KV cache's blocks: who holds which, which are free, and which free ones still hold a known prefix."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence as Tokens
from hashlib import blake2b

from engine.sequence import Sequence


def chained_hash(parent: bytes, token_ids: Tokens[int]) -> bytes:
    """Names a block's content together with everything before it."""
    return blake2b(parent + array("i", token_ids).tobytes(), digest_size=16).digest()


class BlockManager:
    """A block is referenced by sequences (count > 0), or free; a free one may be cached, until it is given out again.

    Free blocks are given out uncached first, then the one released longest ago.
    """

    def __init__(self, num_blocks: int, block_size: int, *, prefix_cache: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.prefix_cache = prefix_cache
        self.hits = 0  # prompt tokens found in the cache
        self.queries = 0  # prompt tokens looked up
        self._references = [0] * num_blocks
        self._uncached = list(range(num_blocks - 1, -1, -1))
        self._cached_free: OrderedDict[int, None] = OrderedDict()  # oldest release first
        self._hash_of: dict[int, bytes] = {}
        self._block_of: dict[bytes, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._uncached) + len(self._cached_free)

    @property
    def num_used(self) -> int:
        return self.num_blocks - self.num_free

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def find_prefix(self, sequence: Sequence) -> tuple[list[int], list[bytes]]:
        """Cached blocks that hold the sequence's beginning. At least one token is left to compute."""
        blocks: list[int] = []
        hashes: list[bytes] = []
        if not self.prefix_cache or sequence.params.prompt_logprobs:
            return blocks, hashes
        parent = b""
        for start in range(0, len(sequence.token_ids) - self.block_size, self.block_size):
            parent = chained_hash(parent, sequence.token_ids[start : start + self.block_size])
            block = self._block_of.get(parent)
            if block is None:
                break
            blocks.append(block)
            hashes.append(parent)
        return blocks, hashes

    def can_admit(self, sequence: Sequence, prefix: Tokens[int], *, spare: int) -> bool:
        """Room for all the sequence's tokens beyond its prefix, with `spare` blocks left over."""
        needed = self.blocks_for(sequence.num_tokens) - len(prefix)
        reusable = sum(1 for block in prefix if self._references[block] == 0)
        return needed + spare <= self.num_free - reusable

    def admit(self, sequence: Sequence, prefix: list[int], hashes: list[bytes]) -> None:
        """Let the sequence hold its cached prefix; those tokens count as computed."""
        for block in prefix:
            if self._references[block] == 0:
                del self._cached_free[block]
            self._references[block] += 1
        sequence.blocks = list(prefix)
        sequence.num_computed = len(prefix) * self.block_size
        sequence.num_hashed = len(prefix)
        sequence.last_hash = hashes[-1] if hashes else b""
        self.queries += len(sequence.token_ids)
        self.hits += sequence.num_computed

    def grow(self, sequence: Sequence, num_tokens: int) -> bool:
        """Blocks for `num_tokens` tokens in all. False, and nothing changed, when there aren't enough."""
        missing = self.blocks_for(num_tokens) - len(sequence.blocks)
        if missing > self.num_free:
            return False
        for _ in range(missing):
            block = self._take()
            self._references[block] = 1
            sequence.blocks.append(block)
        return True

    def _take(self) -> int:
        if self._uncached:
            return self._uncached.pop()
        block, _ = self._cached_free.popitem(last=False)
        del self._block_of[self._hash_of.pop(block)]
        return block

    def register(self, sequence: Sequence) -> None:
        """Make the sequence's full, computed blocks with known tokens available to others."""
        if not self.prefix_cache:
            return
        size = self.block_size
        full = min(sequence.num_computed, len(sequence.token_ids)) // size
        for index in range(sequence.num_hashed, full):
            tokens = sequence.token_ids[index * size : (index + 1) * size]
            sequence.last_hash = chained_hash(sequence.last_hash, tokens)
            if sequence.last_hash not in self._block_of:
                self._block_of[sequence.last_hash] = sequence.blocks[index]
                self._hash_of[sequence.blocks[index]] = sequence.last_hash
        sequence.num_hashed = max(sequence.num_hashed, full)

    def release(self, sequence: Sequence) -> None:
        """Give the blocks back, the last first: a prefix outlives its continuation."""
        for block in reversed(sequence.blocks):
            self._references[block] -= 1
            if self._references[block] == 0:
                if block in self._hash_of:
                    self._cached_free[block] = None
                else:
                    self._uncached.append(block)
        sequence.blocks = []
        sequence.num_computed = sequence.num_hashed = 0
        sequence.last_hash = b""

    def forget_cached(self) -> None:
        """Empty the prefix cache. Blocks in use stay with their sequences."""
        self._uncached.extend(self._cached_free)
        self._cached_free.clear()
        self._hash_of.clear()
        self._block_of.clear()

"""Seeded mutations of a model file: each loads, or is refused in one line; none crashes the process or hangs."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from engine import LLM
from engine.errors import EngineError
from engine.models.gguf_model import open_model
from tests.engine.models.tiny import Shape, weights, write_gguf

MUTATIONS = 3000
LOADED = 150  # of them also go through the core
NASTY = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, 1 << 62, (1 << 63) - 1, (1 << 64) - 1]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("fuzz") / "model.gguf"
    shape = Shape(layers=1, hidden=32, ffn=32, heads=2, kv_heads=1)
    write_gguf(path, shape, tensors=weights(shape), dtype="Q8_0")
    return path.read_bytes()


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Mostly the part before the tensors' data: that is what the loader believes or not."""
    changed = bytearray(content)
    head = content.index(b"blk.0.ffn_down.weight") + 200
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(head) if rng.random() < 0.95 else rng.randrange(len(changed))
        match rng.randrange(6):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at] = rng.randrange(256)
            case 2:
                changed[at : at + 8] = struct.pack("<Q", rng.choice(NASTY))
            case 3:
                changed[at : at + 4] = struct.pack("<I", rng.choice(NASTY) & 0xFFFFFFFF)
            case 4:
                del changed[at : at + rng.randrange(1, 40)]
            case 5:
                start = rng.randrange(head)
                changed[at:at] = changed[start : start + rng.randrange(1, 40)]
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.05 else changed)


def attempt(path: Path, load: object) -> str | None:
    """None when it loaded, else the one line that refuses it."""
    try:
        load(path)  # type: ignore[operator]
    except EngineError as error:
        assert str(error).strip() and "\n" not in str(error)
        return str(error)
    return None


def test_a_mutated_file_loads_or_is_refused_in_one_line(original: bytes, tmp_path: Path) -> None:
    rng, path = random.Random(2), tmp_path / "m.gguf"
    refused = set()
    for _ in range(MUTATIONS):
        path.write_bytes(mutate(original, rng))
        refused.add(attempt(path, open_model))
    assert len(refused) > 100, "the mutations reach only a few of the checks"
    assert None in refused, "no mutation leaves the file loadable, so nothing is tested beyond the first checks"


def test_a_mutated_file_that_loads_also_runs_or_is_refused(original: bytes, tmp_path: Path) -> None:
    rng, path, ran = random.Random(3), tmp_path / "m.gguf", 0

    def run(path: Path) -> None:
        LLM(str(path), threads=1, kv_cache_tokens=64, max_num_seqs=2).generate([[1, 2, 3]])

    while ran < LOADED:
        path.write_bytes(mutate(original, rng))
        if attempt(path, open_model) is None:
            attempt(path, run)
            ran += 1


def test_random_bytes_behind_the_magic_are_refused(tmp_path: Path) -> None:
    rng, path = random.Random(4), tmp_path / "m.gguf"
    for _ in range(500):
        path.write_bytes(
            b"GGUF" + struct.pack("<IQQ", 3, rng.randrange(4), rng.randrange(9)) + rng.randbytes(rng.randrange(400))
        )
        assert attempt(path, open_model) is not None

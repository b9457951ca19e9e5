"""Many clients at once. The long version is tests/nightly/test_soak.py."""

from __future__ import annotations

from pathlib import Path

from tests.engine.server.running import serving
from tests.engine.server.soak import Soak, check_end

SECONDS = 12
GROWTH = 24 << 20  # bytes after warm-up, over thousands of requests to the small model
ALLOCATOR = 96 << 20  # bytes more that the real model's buffers may take in a run of a few hundred requests


def test_a_crowd_on_the_real_model_gets_the_answers_each_would_get_alone() -> None:
    with serving("smollm2", "--kv-cache-tokens", "4096") as server:
        warm = Soak(server, seed=1, longest_output=12, longest_prompt=24)
        warm.run(SECONDS)
        check_end(warm)
        resident = server.resident_bytes()
        second = Soak(server, seed=2, longest_output=12, longest_prompt=24)
        second.run(SECONDS)
        check_end(second)
        assert server.resident_bytes() - resident < ALLOCATOR


def test_a_cache_for_three_sequences_serves_thirty_two_clients(tiny_model: Path) -> None:
    arguments = ("--kv-cache-tokens", "360", "--block-size", "4", "--threads", "1")
    with serving(tiny_model, *arguments) as server:
        Soak(server, clients=32, longest_prompt=12, longest_output=60, seed=1).run(4)
        resident = server.resident_bytes()
        soak = Soak(server, clients=32, longest_prompt=12, longest_output=60)
        soak.run(8)
        check_end(soak)
        assert server.metric("engine_preemptions_total") > 0
        assert server.resident_bytes() - resident < GROWTH

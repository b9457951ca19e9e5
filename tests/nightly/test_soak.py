"""Half an hour of 64 clients on the real model: no request lost or answered twice, no growth, ids as alone."""

from __future__ import annotations

import os

import pytest

from tests.engine.server.running import serving
from tests.engine.server.soak import Soak, check_end

pytestmark = pytest.mark.nightly
MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
GROWTH = 32 << 20  # bytes after warm-up


def test_a_server_stays_up_for_half_an_hour() -> None:
    with serving("smollm2", "--kv-cache-tokens", "8192") as server:
        warm = Soak(server, seed=10, longest_prompt=200, longest_output=64, distinct=64)
        warm.run(MINUTES * 60 * 0.2)
        check_end(warm)
        resident = server.resident_bytes()
        rest = Soak(server, seed=11, longest_prompt=200, longest_output=64, distinct=64)
        rest.run(MINUTES * 60 * 0.8)
        check_end(rest)
        growth = server.resident_bytes() - resident
        print(f"{sum(warm.done.values()) + sum(rest.done.values())} requests, growth {growth} bytes")
        assert growth < GROWTH


def test_a_small_cache_preempts_for_minutes_and_loses_nothing() -> None:
    with serving("smollm2", "--kv-cache-tokens", "768", "--block-size", "8") as server:
        soak = Soak(server, clients=32, longest_prompt=100, longest_output=64)
        soak.run(MINUTES * 60 * 0.1)
        check_end(soak)
        assert server.metric("engine_preemptions_total") > 0

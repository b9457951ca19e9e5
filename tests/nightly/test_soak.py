"""Half an hour of 64 clients on the real model: no request lost or answered twice, no growth, ids as alone."""

from __future__ import annotations

import os

import pytest

from tests.engine.server.running import serving
from tests.engine.server.soak import Soak, check_end

pytestmark = pytest.mark.nightly
MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))


def test_a_server_stays_up_for_half_an_hour() -> None:
    with serving("smollm2", "--kv-cache-tokens", "8192", "--request-timeout", "1800") as server:
        crowd = Soak(server, longest_prompt=100, longest_output=48, distinct=64)
        crowd.fill(8192)
        memory = crowd.run(MINUTES * 60)
        print(f"{sum(crowd.done.values())} requests: {dict(crowd.done)}; {memory}")
        check_end(crowd)
        memory.check()
        print(f"SIGTERM under load: {dict(crowd.terminate())}")
        assert crowd.wrong == []


def test_a_small_cache_preempts_for_minutes_and_loses_nothing() -> None:
    with serving("smollm2", "--kv-cache-tokens", "768", "--block-size", "8") as server:
        soak = Soak(server, clients=32, longest_prompt=100, longest_output=64)
        soak.run(MINUTES * 60 * 0.1)
        print(f"{sum(soak.done.values())} requests: {dict(soak.done)}")
        check_end(soak)
        assert server.metric("engine_preemptions_total") > 0

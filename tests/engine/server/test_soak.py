"""Many clients at once, for seconds. Whether memory grows takes longer to tell: tests/nightly/test_soak.py."""

from __future__ import annotations

from pathlib import Path

from tests.engine.server.running import serving
from tests.engine.server.soak import Soak, check_end

SECONDS = 12


def test_a_crowd_on_the_real_model_gets_the_answers_each_would_get_alone() -> None:
    with serving("smollm2", "--kv-cache-tokens", "4096") as server:
        for seed in (1, 2):
            crowd = Soak(server, seed=seed, longest_output=12, longest_prompt=24)
            crowd.run(SECONDS)
            check_end(crowd)


def test_a_cache_for_three_sequences_serves_thirty_two_clients(tiny_model: Path) -> None:
    arguments = ("--kv-cache-tokens", "360", "--block-size", "4", "--threads", "1")
    with serving(tiny_model, *arguments) as server:
        soak = Soak(server, clients=32, longest_prompt=12, longest_output=60)
        soak.run(8)
        check_end(soak)
        assert server.metric("engine_preemptions_total") > 0

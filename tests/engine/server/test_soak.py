"""Two minutes of many clients at once, and proof that the soak would notice a leak. Half an hour: tests/nightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.server.running import serving
from tests.engine.server.soak import Soak, check_end


def test_a_crowd_on_the_real_model_gets_the_answers_each_would_get_alone() -> None:
    with serving("smollm2", "--kv-cache-tokens", "4096") as server:
        crowd = Soak(server, longest_output=12, longest_prompt=24)
        crowd.fill(4096)
        memory = crowd.run(90)
        check_end(crowd)
        memory.check()
        ends = crowd.terminate()
        assert crowd.wrong == [] and ends["answered"] > 0


def test_a_cache_for_three_sequences_serves_thirty_two_clients() -> None:
    with serving("smollm2", "--kv-cache-tokens", "384", "--block-size", "8") as server:
        soak = Soak(server, clients=32, longest_prompt=50, longest_output=40)
        soak.run(24)
        check_end(soak)
        assert server.metric("engine_preemptions_total") > 0


@pytest.mark.parametrize("module", ["engine", "tests.engine.server.leaky"])
def test_a_planted_leak_is_noticed(tiny_model: Path, module: str) -> None:
    with serving(tiny_model, "--kv-cache-tokens", "4096", "--threads", "1", module=module) as server:
        soak = Soak(server, longest_output=4, longest_prompt=6)
        soak.fill(4096)
        memory = soak.run(12)
        check_end(soak)
        if module == "engine":
            memory.check()
        else:
            with pytest.raises(AssertionError, match="more in the last third"):
                memory.check()

"""The golden ids of the small random Qwen3 are still what the oracle says."""

from __future__ import annotations

import json

from tests.gpu import make_qwen3_golden
from tests.oracle.__main__ import request_differences


def test_the_golden_ids_of_the_random_qwen3_are_the_oracles() -> None:
    golden, made = json.loads(make_qwen3_golden.FILE.read_text()), make_qwen3_golden.make()
    assert made["weights_sha256"] == golden["weights_sha256"]
    pairs = zip(golden["requests"], made["requests"], strict=True)
    assert [problem for kept, now in pairs for problem in request_differences(kept, now)] == []

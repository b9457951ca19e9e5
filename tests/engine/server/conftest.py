"""One server with a small random model for most tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.engine.server.running import Running, serving


@pytest.fixture(scope="session")
def server(tiny_model: Path) -> Iterator[Running]:
    with serving(tiny_model, "--kv-cache-tokens", "16384", "--max-num-seqs", "16", "--threads", "1") as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)

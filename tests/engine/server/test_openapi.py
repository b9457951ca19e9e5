"""schemathesis against the server's own OpenAPI document: no input gives a 5xx, every answer is as documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.engine.server.running import Running, serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


def test_the_document_describes_every_route(server: Running) -> None:
    _, document = server.get("/openapi.json")
    assert set(document["paths"]) == {
        "/v1/completions", "/v1/chat/completions", "/v1/models", "/v1/models/{model}",
        "/tokenize", "/detokenize", "/health", "/metrics",
    }  # fmt: skip


def test_schemathesis_finds_no_server_error(tiny_model: Path) -> None:
    """A short context, since many valid requests ask for all of it, in up to 128 choices."""
    arguments = ("--max-context", "64", "--kv-cache-tokens", "4096", "--threads", "1")
    with serving(tiny_model, *arguments) as server:
        probe(server)


def probe(server: Running) -> None:
    st = Path(sys.executable).with_name("schemathesis")
    command = [st, "run", f"{server.url}/openapi.json", "--phases", "coverage,fuzzing", "--max-examples", "25"]
    options = [
        "--checks",
        ",".join(CHECKS),
        "--seed",
        "7",
        "--no-color",
        "--generation-database",
        "none",
        "--warnings",
        "off",
    ]
    ran = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr
    assert "Tested: 8" in ran.stdout
    server.wait_idle()
    assert server.get("/health")[0] == 200

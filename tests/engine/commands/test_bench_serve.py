"""bench-serve against our own server, and what it says of servers that aren't there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli import main
from engine.load.workload import Workload
from tests.engine.server.running import Running, serving


@pytest.fixture(scope="module")
def server(tiny_model: Path) -> Iterator[Running]:
    with serving(
        tiny_model, "--kv-cache-tokens", "16384", "--max-num-seqs", "4", "--max-queue", "2", "--threads", "1"
    ) as running:
        yield running


@pytest.mark.parametrize("how", [["--clients", "4"], ["--rate", "100"]], ids=["closed", "open"])
def test_every_request_is_counted_with_its_tokens(
    how: list[str], server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--requests", "6", "--prompt-words", "8", "--max-tokens", "10", "--shared-prefix-words", "4"]
    assert main(["bench-serve", "--url", server.url, "--json", *how, *sizes]) in (0, 1)
    result = json.loads(capsys.readouterr().out)
    answered = [sample for sample in result["samples"] if sample["status"] == 200]
    assert len(result["samples"]) == 6 and result["failed"] == 6 - len(answered) == result["rejected"]
    assert result["output_tokens"] == 10 * len(answered)
    assert all(0 < sample["first_token_s"] <= sample["duration_s"] for sample in answered)
    assert set(result["time_to_first_token_s"]) == {"mean", "p50", "p90", "p99", "max"}


def test_refused_requests_are_counted_as_failed(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--requests", "40", "--clients", "40", "--prompt-words", "4", "--max-tokens", "300"]
    assert main(["bench-serve", "--url", server.url, *sizes]) == 1
    assert "failed" in capsys.readouterr().out


def test_a_server_of_its_own_is_measured_with_its_memory(
    tiny_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    sizes = ["--requests", "3", "--clients", "2", "--prompt-words", "8", "--max-tokens", "6", "--warmup", "1"]
    spawn = f"--model {tiny_model} --kv-cache-tokens 4096 --threads 1"
    assert main(["bench-serve", "--spawn", spawn, "--json", *sizes]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["failed"] == 0 and result["peak_memory_bytes"] > 1 << 20
    assert main(["bench-serve", "--url", result["url"], *sizes]) == 2  # it has gone


def test_a_server_that_does_not_start_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench-serve", "--spawn", "--model /nowhere.gguf"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "the server did not start" in line and "/nowhere.gguf" in line


def test_prompts_share_their_beginning_and_nothing_else() -> None:
    bodies = Workload(requests=3, prompt_words=10, shared_words=6, seed=1).bodies()
    words = [body["prompt"].split() for body in bodies]
    assert words[0][:6] == words[1][:6] == words[2][:6] and len({tuple(prompt[6:]) for prompt in words}) == 3
    assert bodies == Workload(requests=3, prompt_words=10, shared_words=6, seed=1).bodies()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--url", "http://127.0.0.1:1"], "does not serve completions"),
        (["--clients", "0"], "--clients is 0"),
        (["--rate", "-1"], "--rate is -1.0"),
        (["--prompt-words", "3", "--shared-prefix-words", "4"], "--shared-prefix-words"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench-serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1

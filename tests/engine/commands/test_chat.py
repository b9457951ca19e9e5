"""The terminal chat, driven through a pipe."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from engine import LLM, SamplingParams
from engine.cli import main


def chat(
    lines: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *extra: str
) -> tuple[str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    arguments = ["chat", "--model", str(model), "--max-tokens", "6", "--ignore-eos", "--kv-cache-tokens", "512", *extra]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_each_turn_sees_the_ones_before(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = chat("hello\nwor\n", tiny_model, monkeypatch, capsys)
    llm, params = LLM(str(tiny_model), kv_cache_tokens=512), SamplingParams(max_tokens=6, ignore_eos=True)
    first = llm.chat([{"role": "user", "content": "hello"}], params).text
    turns = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "wor"},
    ]
    assert out == f"{first} [...]\n{llm.chat(turns, params).text} [...]\n"


def test_new_forgets_and_exit_ends(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = chat("hello\n/new\nhello\n/exit\nnever asked\n", tiny_model, monkeypatch, capsys)
    first, _, second = out.partition(" [...]\n")
    assert second == f"{first} [...]\n"


def test_a_conversation_longer_than_the_context_says_so_and_goes_on(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = chat(f"{'x' * 100}\nhello\n", tiny_model, monkeypatch, capsys, "--max-context", "50")
    assert "/new begins anew" in err and "context" in err

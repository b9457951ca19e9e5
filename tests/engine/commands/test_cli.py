"""The command line: its JSON, its exit codes, and one line for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli import COMMANDS, main

ROOT = Path(__file__).parents[3]
Run = Callable[..., Any]


@pytest.fixture
def document(tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(command: str, *arguments: str) -> dict[str, Any]:
        small = ("--kv-cache-tokens", "2048", "--threads", "1")
        assert main([command, "--model", str(tiny_model), "--json", *small, *arguments]) == 0
        printed = capsys.readouterr().out
        assert printed.count("\n") == 1
        return dict(json.loads(printed))

    return run


def test_generate_prints_what_the_gates_read(document: Run) -> None:
    result = document("generate", "--prompt", "hello", "--max-tokens", "5", "--ignore-eos")
    assert result["model"] == "tiny.gguf"
    assert {"backend", "name", "arch", "driver"} <= set(result["device"])
    (request,) = result["requests"]
    assert len(request["token_ids"]) == len(request["logprobs"]) == len(request["runner_up"]) == 5
    assert set(request["runner_up"][0]) == {"token_id", "logprob"}
    assert request["finish_reason"] == "length" and isinstance(request["text"], str) and request["prompt_token_ids"]
    assert set(result["timings"]) == {"load_s", "prefill_tokens_per_s", "decode_tokens_per_s"}
    assert all(value > 0 for value in result["timings"].values())
    assert result["peak_memory_bytes"] > 1 << 20
    assert result["kernel_launches"] and all(count > 0 for count in result["kernel_launches"].values())


def test_prompts_keep_the_order_of_the_command_line(document: Run) -> None:
    result = document("generate", "--prompt", "h", "--prompt-ids", "7,8,9", "--prompt", "o", "--max-tokens", "2")
    assert [request["prompt_token_ids"] for request in result["requests"]] == [[71], [7, 8, 9], [78]]


def test_the_runner_up_is_never_the_token_and_never_likelier(document: Run) -> None:
    (request,) = document("generate", "--prompt-ids", "1,2,3", "--max-tokens", "20", "--ignore-eos")["requests"]
    for token, logprob, second in zip(request["token_ids"], request["logprobs"], request["runner_up"], strict=True):
        assert second["token_id"] != token and second["logprob"] <= logprob


def test_chat_goes_through_the_template(document: Run) -> None:
    (plain,) = document("generate", "--prompt", "hello", "--max-tokens", "1")["requests"]
    (chat,) = document("generate", "--prompt", "hello", "--chat", "--max-tokens", "1")["requests"]
    assert chat["prompt_token_ids"][1:] == plain["prompt_token_ids"] and len(chat["prompt_token_ids"]) == 2


def test_a_prompts_file_mixes_kinds_and_lengths(document: Run, tmp_path: Path) -> None:
    entries = [
        {"prompt": "h", "max_tokens": 2},
        {"prompt_token_ids": [5]},
        {"messages": [{"role": "user", "content": "o"}]},
    ]
    (tmp_path / "p.json").write_text(json.dumps(entries))
    result = document("generate", "--prompts-file", str(tmp_path / "p.json"), "--max-tokens", "4", "--ignore-eos")
    assert [len(request["token_ids"]) for request in result["requests"]] == [2, 4, 4]


def test_arrivals_and_aborts_are_as_written(document: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"step": 0}, {"step": 9, "abort_after": 3}]')
    arguments = ("--prompt-ids", "5,6", "--prompt-ids", "7", "--max-tokens", "6", "--ignore-eos")
    free = document("generate", *arguments)["requests"]
    fixed = document("generate", *arguments, "--arrivals", str(tmp_path / "a.json"))["requests"]
    assert fixed[0]["token_ids"] == free[0]["token_ids"]
    assert fixed[1]["token_ids"] == free[1]["token_ids"][:3] and fixed[1]["finish_reason"] == "abort"


def test_the_same_seed_gives_the_same_tokens(document: Run) -> None:
    def sample(seed: str) -> list[int]:
        arguments = ("--prompt-ids", "5,6", "--temperature", "1", "--max-tokens", "20", "--ignore-eos", "--seed", seed)
        return list(document("generate", *arguments)["requests"][0]["token_ids"])

    assert sample("3") == sample("3") != sample("4")


def test_score_agrees_with_what_generate_said(document: Run) -> None:
    (made,) = document("generate", "--prompt-ids", "5,6,7", "--max-tokens", "6", "--ignore-eos")["requests"]
    tokens = ",".join(map(str, made["token_ids"]))
    (scored,) = document("score", "--prompt-ids", "5,6,7", "--token-ids", tokens)["requests"]
    assert scored["logprobs"] == pytest.approx(made["logprobs"], abs=1e-4)
    assert [best["token_id"] for best in scored["best"]] == made["token_ids"]
    assert [s["token_id"] for s in scored["runner_up"]] == [s["token_id"] for s in made["runner_up"]]


def test_score_takes_several_pairs_of_any_length(document: Run) -> None:
    result = document("score", "--prompt-ids", "1", "--token-ids", "2", "--prompt-ids", "3,4", "--token-ids", "5,6,7")
    assert [len(request["logprobs"]) for request in result["requests"]] == [1, 3]


def test_bench_prints_medians_with_the_raw_samples(document: Run) -> None:
    result = document("bench", "--prompt-tokens", "20", "--decode-tokens", "8", "--batch", "3", "--repeat", "3")
    assert len(result["samples"]) == 3
    rates = sorted(sample["decode_tokens_per_s"] for sample in result["samples"])
    assert result["decode_tokens_per_s"] == rates[1]
    assert result["load_s"] > 0 and result["peak_memory_bytes"] > 0 and result["batch"] == 3


def test_without_json_text_is_printed(tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--model", str(tiny_model), "--prompt", "hello", "--max-tokens", "3", "--stream"]) == 0
    assert "tokens" in capsys.readouterr().err
    assert main(["score", "--model", str(tiny_model), "--prompt-ids", "1", "--token-ids", "2,3"]) == 0
    assert "perplexity" in capsys.readouterr().out
    assert (
        main(["bench", "--model", str(tiny_model), "--prompt-tokens", "4", "--decode-tokens", "2", "--repeat", "1"])
        == 0
    )
    assert "tokens/s" in capsys.readouterr().out


MISTAKES = [
    (["generate", "--prompt", "x", "--model", "/nowhere.gguf"], "no such model file"),
    (["generate"], "no prompt"),
    (["generate", "--prompt", "x", "--max-tokens", "0"], "max_tokens is 0"),
    (["generate", "--prompt", "x", "--max-tokens", "many"], "--max-tokens: invalid int value"),
    (["generate", "--prompt", "x", "--temperature", "-1"], "temperature is -1.0"),
    (["generate", "--prompt", "x", "--top-p", "0"], "top_p is 0.0"),
    (["generate", "--prompt", "x", "--threads", "-2"], "threads is -2"),
    (["generate", "--prompt", "x", "--precision", "magic"], "invalid choice: 'magic'"),
    (["generate", "--prompt-ids", "1,x"], "no list of token ids"),
    (["generate", "--prompt-ids", "1,2,100000"], "outside the vocabulary of 266"),
    (["generate", "--prompt-ids", ",".join(["5"] * 5000)], "shorten the prompt to 4095 tokens"),
    (["generate", "--prompt", "x", "--max-tokens", "300", "--kv-cache-tokens", "64"], "in which 64 tokens fit"),
    (["generate", "--prompt", "x", "--kv-cache-tokens", "1000000000000"], "tokens would fit"),
    (["generate", "--prompt", "x", "--device", "abacus"], "abacus"),
    (["generate", "--prompt", "x", "--async-device-mirror", "on"], "mirror"),
    (["generate", "--prompt", "x", "--attention-backend", "magic"], "magic"),
    (["generate", "--prompts-file", "/nowhere.json"], "/nowhere.json: can't be read"),
    (["generate", "--prompt", "x", "--arrivals", "/nowhere.json"], "/nowhere.json: can't be read"),
    (["score", "--prompt-ids", "1"], "1 --prompt-ids and 0 --token-ids"),
    (["bench", "--batch", "0"], "--batch is 0"),
    (["serve", "--port", "99999"], "--port is 99999"),
    (["dance"], "invalid choice: 'dance'"),
    ([], "required"),
    (["generate", "--prompt", "x", "--colour"], "unrecognized arguments: --colour"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=[says for _, says in MISTAKES])
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_model = (
        arguments
        if "--model" in arguments or not set(arguments) & set(COMMANDS)
        else [*arguments, "--model", str(tiny_model)]
    )
    assert main(with_model) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err and printed.err.startswith("engine: ") and printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "content", ["{", "[3]", '[{"prompt": "a", "messages": []}]', '[{"prompt": "a", "colour": 1}]', "{}"]
)
def test_a_wrong_prompts_file_is_named(
    content: str, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.json"
    path.write_text(content)
    assert main(["generate", "--model", str(tiny_model), "--prompts-file", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"engine: {path}: ")


@pytest.mark.parametrize(
    "content",
    ['[{"step": -1}]', '[{"step": 1}, {"step": 2}]', '[{"abort_after": 2}]', '[{"step": 0, "abort_after": 0}]'],
)
def test_a_wrong_arrivals_file_is_named(
    content: str, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert main(["generate", "--model", str(tiny_model), "--prompt", "x", "--arrivals", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"engine: {path}: ")


def engine(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, check=False)


def test_the_module_runs_as_a_program(tiny_model: Path) -> None:
    ran = engine("generate", "--model", str(tiny_model), "--prompt", "hello", "--max-tokens", "2", "--json")
    assert ran.returncode == 0 and ran.stderr == "" and json.loads(ran.stdout)["requests"]
    ran = engine("generate", "--model", "/nowhere.gguf", "--prompt", "x")
    assert ran.returncode == 2 and ran.stdout == "" and "Traceback" not in ran.stderr


def test_the_environment_sets_what_the_command_line_leaves_open(tiny_model: Path) -> None:
    arguments = ("generate", "--model", str(tiny_model), "--prompt", "x", "--max-tokens", "1", "--json")
    assert json.loads(engine(*arguments, ENGINE_THREADS="1").stdout)["threads"] == 1
    assert json.loads(engine(*arguments, "--threads", "2", ENGINE_THREADS="1").stdout)["threads"] == 2
    assert "ENGINE_THREADS='lots'" in engine(*arguments, ENGINE_THREADS="lots").stderr
    assert "async_device_mirror is 'perhaps'" in engine(*arguments, ENGINE_ASYNC_DEVICE_MIRROR="perhaps").stderr


def test_a_reader_that_leaves_causes_no_traceback(tiny_model: Path) -> None:
    arguments = f"--model {tiny_model} --prompt x --max-tokens 400 --ignore-eos --stream"
    command = f"{sys.executable} -m engine generate {arguments} | head -c 5"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False, errors="replace"
    )
    assert "Traceback" not in ran.stderr


def test_peak_memory_stays_under_twice_the_model_and_the_cache(smollm2: Path) -> None:
    ran = engine("generate", "--prompt", "Hello", "--max-tokens", "4", "--json", "--kv-cache-tokens", "256")
    result = json.loads(ran.stdout)
    assert result["peak_memory_bytes"] < 2 * smollm2.stat().st_size + result["kv_bytes"]

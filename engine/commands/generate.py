"""`python -m engine generate`: continue prompts, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.choice import Delta, Listener
from engine.commands import report, settings
from engine.errors import ArgumentsError
from engine.llm import LLM, Arrival
from engine.outputs import Completion, RequestOutput


class _Collect(argparse.Action):
    """Prompts of every kind in the order of the command line."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        namespace.prompts = [*(namespace.prompts or []), (option, values)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_argument_group("prompts")
    source.add_argument("--prompt", action=_Collect, dest="prompts", metavar="TEXT", help="may be repeated")
    source.add_argument(
        "--prompt-ids", action=_Collect, dest="prompts", metavar="504,3575", help="a prompt as token ids"
    )
    source.add_argument("--prompts-file", type=Path, help='JSON list of {"prompt" or "prompt_token_ids" or "messages"}')
    source.add_argument("--chat", action="store_true", help="each --prompt is a user's message in the chat template")
    source.add_argument("--system", help="the system message for --chat")
    source.add_argument("--arrivals", type=Path, help='JSON list, one per prompt: {"step": 3, "abort_after": 10}')
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--stream", action="store_true", help="print the first prompt's text as it comes")
    settings.add_sampling_arguments(parser)
    settings.add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    entries = _entries(arguments)
    arrivals = _arrivals(arguments.arrivals, len(entries))
    params = [settings.sampling_params(arguments, **_own(entry)) for entry in entries]
    llm = LLM(**settings.engine_settings(arguments))
    prompts = [_encode(llm, entry) for entry in entries]
    stream = arguments.stream and not arguments.json
    outputs = llm.generate(prompts, params, arrivals=arrivals, on_token=_stream_first if stream else None)
    if arguments.json:
        print(json.dumps(document(llm, outputs)))
    else:
        _print(llm, outputs, streamed=arguments.stream)
    return 0


def document(llm: LLM, outputs: list[RequestOutput]) -> dict[str, Any]:
    requests = [_request(output, completion) for output in outputs for completion in output.completions]
    return {**report.heading(llm), "requests": requests, **report.costs(llm)}


def _request(output: RequestOutput, completion: Completion) -> dict[str, Any]:
    return {
        "prompt_token_ids": output.prompt_token_ids,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        "runner_up": report.pairs(completion.runner_up),
        "text": completion.text,
        "finish_reason": completion.finish_reason,
        "seed": completion.seed,
        "num_cached_tokens": output.num_cached_tokens,
        "preemptions": output.preemptions,
    }


def _stream_first(index: int) -> Listener:
    return _show if index == 0 else _ignore


def _show(delta: Delta) -> None:
    print(delta.text, end="", flush=True)


def _ignore(delta: Delta) -> None: ...


def _entries(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    entries = [_entry(option, value, arguments) for option, value in arguments.prompts or []]
    if arguments.prompts_file:
        entries += settings.read_json_list(arguments.prompts_file, _problem_of_prompt)
    if not entries:
        raise ArgumentsError("no prompt; give --prompt TEXT, --prompt-ids or --prompts-file")
    return entries


def _entry(option: str, value: str, arguments: argparse.Namespace) -> dict[str, Any]:
    if option == "--prompt-ids":
        return {"prompt_token_ids": settings.token_ids(value)}
    if not arguments.chat:
        return {"prompt": value}
    system = [{"role": "system", "content": arguments.system}] if arguments.system else []
    return {"messages": [*system, {"role": "user", "content": value}]}


def _problem_of_prompt(entry: Any) -> str | None:
    kinds = ("prompt", "prompt_token_ids", "messages")
    if not isinstance(entry, dict) or sum(kind in entry for kind in kinds) != 1:
        return f"must be an object with one of {', '.join(kinds)}"
    unknown = sorted(set(entry) - {*kinds, "max_tokens", "seed"})
    return f"unknown key {unknown[0]!r}" if unknown else None


def _own(entry: dict[str, Any]) -> dict[str, Any]:
    """The sampling parameters that a prompt sets for itself."""
    return {name: entry[name] for name in ("max_tokens", "seed") if name in entry}


def _encode(llm: LLM, entry: dict[str, Any]) -> list[int]:
    if "messages" in entry:
        return llm.encode_chat(entry["messages"])
    return llm.encode(entry["prompt"] if "prompt" in entry else entry["prompt_token_ids"])


def _arrivals(path: Path | None, count: int) -> list[Arrival]:
    if path is None:
        return [Arrival()] * count
    arrivals = settings.read_json_list(path, _problem_of_arrival)
    if len(arrivals) != count:
        raise ArgumentsError(f"{path}: {len(arrivals)} arrivals for {count} prompts; give one for each")
    return [Arrival(**entry) for entry in arrivals]


def _problem_of_arrival(entry: Any) -> str | None:
    if not isinstance(entry, dict) or set(entry) - {"step", "abort_after"} or "step" not in entry:
        return 'must be an object with "step" and perhaps "abort_after"'
    for name, value in entry.items():
        if type(value) is not int or value < (0 if name == "step" else 1):
            return f'"{name}" is {value!r}, not a sensible count'
    return None


def _print(llm: LLM, outputs: Sequence[RequestOutput], *, streamed: bool) -> None:
    for index, output in enumerate(outputs):
        if len(outputs) > 1:
            print(f"--- prompt {index}")
        print("" if streamed and index == 0 else output.text)
    counts = llm.loop.statistics
    print(
        f"[{llm.model.device.name}: {counts.prompt_tokens} prompt tokens at {counts.prefill_tokens_per_s:.0f}/s, "
        f"{counts.output_tokens} new at {counts.decode_tokens_per_s:.1f}/s, load {llm.load_s:.2f} s, "
        f"peak memory {report.peak_memory_bytes() / 1e6:.0f} MB]",
        file=sys.stderr,
    )

"""`python -m engine score`: teacher forcing. What would the model have said at each place, and how sure was it?"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from typing import Any

from engine.commands import report, settings
from engine.errors import ArgumentsError
from engine.llm import LLM
from engine.outputs import PromptScores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prompt-ids", action="append", default=[], metavar="504,3575", help="may be repeated")
    parser.add_argument("--token-ids", action="append", default=[], metavar="28,216", help="one for each --prompt-ids")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    settings.add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    pairs = _pairs(arguments)
    llm = LLM(**settings.engine_settings(arguments))
    scores = llm.score_all(pairs)
    if arguments.json:
        requests = [_request(prompt, tokens, score) for (prompt, tokens), score in zip(pairs, scores, strict=True)]
        print(json.dumps({**report.heading(llm), "requests": requests, **report.costs(llm)}))
    else:
        for (_, tokens), score in zip(pairs, scores, strict=True):
            _print(llm, tokens, score)
    return 0


def _pairs(arguments: argparse.Namespace) -> list[tuple[list[int], list[int]]]:
    prompts, continuations = arguments.prompt_ids, arguments.token_ids
    if not prompts or len(prompts) != len(continuations):
        raise ArgumentsError(
            f"{len(prompts)} --prompt-ids and {len(continuations)} --token-ids; give one for each other"
        )
    return [(settings.token_ids(p), settings.token_ids(t)) for p, t in zip(prompts, continuations, strict=True)]


def _request(prompt: Sequence[int], tokens: Sequence[int], scores: PromptScores) -> dict[str, Any]:
    return {
        "prompt_token_ids": list(prompt),
        "token_ids": list(tokens),
        "logprobs": scores.logprobs,
        "best": report.pairs(scores.best),
        "runner_up": report.pairs(scores.runner_up),
    }


def _print(llm: LLM, tokens: Sequence[int], scores: PromptScores) -> None:
    for token, logprob, best in zip(tokens, scores.logprobs, scores.best, strict=True):
        agrees = (
            "" if best.token_id == token else f"   best {llm.tokenizer.token_text(best.token_id)!r} {best.logprob:.3f}"
        )
        print(f"{logprob:9.3f}  {llm.tokenizer.token_text(token)!r}{agrees}")
    print(f"perplexity {math.exp(-sum(scores.logprobs) / len(scores.logprobs)):.3f} over {len(tokens)} tokens")

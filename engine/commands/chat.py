"""`python -m engine chat`: talk to the model in the terminal, its answer appearing as it comes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from engine.choice import Delta
from engine.commands import settings
from engine.errors import RequestError
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from engine.sequence import FinishReason

HELP = "/new begins anew, /exit or Ctrl-D ends, Ctrl-C stops an answer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", help="the system message")
    settings.add_sampling_arguments(parser)
    parser.set_defaults(max_tokens=512)
    settings.add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    params = settings.sampling_params(arguments)
    llm = LLM(**{"max_num_seqs": 1, **settings.engine_settings(arguments)})
    conversation = Conversation(llm, params, arguments.system)
    print(f"{llm.path.name}: {HELP}", file=sys.stderr)
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return 0
        if line == "/exit":
            return 0
        if line == "/new":
            conversation = Conversation(llm, params, arguments.system)
        elif line:
            conversation.say(line)


class Conversation:
    """The turns so far. The prefix cache keeps what they cost, so each turn computes only what is new."""

    def __init__(self, llm: LLM, params: SamplingParams, system: str | None) -> None:
        self._llm = llm
        self._params = params
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []

    def say(self, text: str) -> None:
        asked = [*self._messages, {"role": "user", "content": text}]
        try:
            answer = self._answer(asked)
        except RequestError as error:
            print(f"[{error}; /new begins anew]", file=sys.stderr)
            return
        self._messages = [*asked, {"role": "assistant", "content": answer}]

    def _answer(self, messages: list[dict[str, Any]]) -> str:
        request = self._llm.request(self._llm.encode_chat(messages), self._params)
        self._llm.submit(request, _show)
        try:
            while not request.output.finished:
                self._llm.loop.step()
        except KeyboardInterrupt:
            self._llm.abort(request)
        print("" if request.output.completions[0].finish_reason is FinishReason.STOP else " [...]")
        return request.output.text


def _show(delta: Delta) -> None:
    print(delta.text, end="", flush=True)

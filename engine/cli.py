"""The command line: one module per command in `commands/`, imported when it is called."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from engine.errors import ArgumentsError, EngineError

COMMANDS = {
    "generate": "continue prompts",
    "score": "teacher-force given tokens and report their probabilities",
    "bench": "measure prefill and decode speed",
    "serve": "an OpenAI-compatible HTTP server",
    "chat": "talk to the model in the terminal",
    "bench-serve": "measure a running server",
}


class Parser(argparse.ArgumentParser):
    """One line for a mistake, without the usage text."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentsError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except EngineError as error:
        print(f"engine: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader left; Python would complain while flushing at exit
        return 0
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str]) -> int:
    parser = Parser(prog="python -m engine", description="A small LLM inference engine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = next((word for word in argv if word in COMMANDS), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
        if name == wanted:
            importlib.import_module(f"engine.commands.{name.replace('-', '_')}").add_arguments(command)
    arguments = parser.parse_args(argv)
    module = importlib.import_module(f"engine.commands.{arguments.command.replace('-', '_')}")
    return int(module.run(arguments))

"""`python -m engine serve`: the HTTP server. SIGTERM lets accepted requests finish, then stops."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from engine.commands import settings
from engine.errors import ArgumentsError, EngineError
from engine.llm import LLM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000); 0 picks a free one")
    parser.add_argument("--served-model-name", help="the model's name in the API; default: the file's name")
    parser.add_argument("--api-key", action="append", default=[], help="may be repeated; also ENGINE_API_KEY")
    parser.add_argument("--max-queue", type=int, default=256, help="requests beyond the batch; more get 429 (256)")
    parser.add_argument("--max-body-mb", type=float, default=8, help="largest request body (8)")
    parser.add_argument("--request-timeout", type=float, default=600, help="seconds for one request (600)")
    parser.add_argument("--write-timeout", type=float, default=60, help="seconds a reader may take nothing (60)")
    parser.add_argument("--drain-timeout", type=float, default=60, help="seconds to finish after SIGTERM (60)")
    settings.add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    try:
        from engine.server import run as server
    except ImportError as error:
        raise EngineError(f"the server needs {error.name}; pip install 'greenlane[serve]'") from None
    llm = LLM(**settings.engine_settings(arguments))
    return server.run(
        llm,
        _settings(arguments, llm),
        host=arguments.host,
        port=arguments.port,
        drain_timeout=arguments.drain_timeout,
        ready=lambda url: print(f"engine: serving {llm.path.name} on {url}", file=sys.stderr, flush=True),
    )


def _settings(arguments: argparse.Namespace, llm: LLM) -> Any:
    from engine.server.app import Settings

    environment = os.environ.get("ENGINE_API_KEY")
    return Settings(
        model_name=arguments.served_model_name or llm.path.stem,
        api_keys=[*arguments.api_key, *([environment] if environment else [])],
        max_queue=arguments.max_queue,
        max_body_bytes=int(arguments.max_body_mb * 1e6),
        request_timeout=arguments.request_timeout,
        write_timeout=arguments.write_timeout,
    )


def _check(arguments: argparse.Namespace) -> None:
    if not 0 <= arguments.port <= 65535:
        raise ArgumentsError(f"--port is {arguments.port}; it must be from 0 to 65535")
    if arguments.max_queue < 0:
        raise ArgumentsError(f"--max-queue is {arguments.max_queue}; it must be at least 0")
    for name in ("max_body_mb", "request_timeout", "write_timeout", "drain_timeout"):
        if not getattr(arguments, name) > 0:
            raise ArgumentsError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}; it must be above 0")

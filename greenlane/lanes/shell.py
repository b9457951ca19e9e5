"""`greenlane shell LANE`: the lane's place, its folders and its variables, with a person in it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace

from greenlane.executors.docker import DockerExecutor
from greenlane.executors.watchdog import Watchdog
from greenlane.images.build import command_line
from greenlane.lanes import container, pipeline, plan, setup
from greenlane.lanes.context import Context
from greenlane.lanes.session import Options, open_session


def command(arguments: argparse.Namespace) -> int:
    with ExitStack() as stack:
        session = stack.enter_context(open_session(arguments.matrix, Options(), base=None, merge=False))
        lane = plan.lanes_named(session.matrix.lanes, [arguments.lane])[0]
        watchdog = Watchdog()
        stack.callback(watchdog.close)
        session = replace(session, watchdog=watchdog)
        stack.enter_context(session.locked(lane))
        context = pipeline.open_context(session, lane, stack)
        return _enter_container(context) if isinstance(context.executor, DockerExecutor) else _enter_host(context)


def _enter_container(context: Context) -> int:
    container.run(context)
    executor = context.executor
    assert isinstance(executor, DockerExecutor)
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    settings = [f"--env={name}={value}" for name, value in _environment(context).items()]
    command = [
        command_line().path,
        "exec",
        "--interactive",
        *terminal,
        *settings,
        "--workdir",
        str(executor.inside.build),
    ]
    shell = ["/bin/sh", "-c", "exec $(command -v bash || echo sh)"]
    environment = {**os.environ, "DOCKER_HOST": executor.daemon.base_url}
    return subprocess.run([*command, executor.container, *shell], env=environment, check=False).returncode


def _enter_host(context: Context) -> int:
    setup.run(context)
    environment = {**os.environ, **_environment(context), "VIRTUAL_ENV": str(context.host.env)}
    environment["PATH"] = f"{context.host.env}/bin:{os.environ.get('PATH', os.defpath)}"
    shell = os.environ.get("SHELL", "/bin/sh")
    return subprocess.run([shell], cwd=context.host.build, env=environment, check=False).returncode


def _environment(context: Context) -> dict[str, str]:
    inside = context.executor.inside
    return {"HOME": str(inside.home), "TMPDIR": str(inside.temporary), "LANG": "C.UTF-8", **context.environment()}

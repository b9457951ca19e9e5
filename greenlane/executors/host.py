"""Runs a lane's commands on this machine, in process groups that are killed as a whole."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import venv
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Command, Exit, Folders, OnLine, Stream
from greenlane.executors.lines import Lines
from greenlane.executors.watchdog import Watchdog

GRACE_S = 2.0  # between SIGTERM and SIGKILL
POLL_S = 0.1
# What set-up commands may see of the host beside the lane's own variables: how to reach the package index.
SETUP_VARIABLES = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
SETUP_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


class HostExecutor:
    name = "host"

    def __init__(self, folders: Folders, watchdog: Watchdog, cancel: threading.Event) -> None:
        self.inside = folders
        self.python = str(folders.env / "bin" / "python")
        self._watchdog = watchdog
        self._cancel = cancel

    def start(self) -> None:
        """Makes the lane's virtual environment where it is missing."""
        if Path(self.python).exists():
            return
        try:
            venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(self.inside.env)
        except (OSError, subprocess.CalledProcessError) as error:
            raise EnvironmentMissing(
                f"cannot make the virtual environment {self.inside.env}: {error}; install python3-venv"
            ) from error

    def run(self, command: Command, on_line: OnLine) -> Exit:
        process = subprocess.Popen(
            ["/bin/sh", "-ec", command.script],
            cwd=command.cwd,
            env=self._environment(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._watchdog.add("group", str(process.pid))
        try:
            timed_out = self._pump(process, on_line, command.timeout_s)
        finally:
            end_group(process)
            self._watchdog.remove("group", str(process.pid))
        return Exit(process.returncode if process.returncode >= 0 else 128 - process.returncode, timed_out=timed_out)

    def close(self) -> None:
        """Every command's group has ended with it."""

    def _environment(self, command: Command) -> dict[str, str]:
        path = f"{self.inside.env}/bin:{os.environ.get('PATH', os.defpath)}"
        base = {"PATH": path, "HOME": str(self.inside.home), "TMPDIR": str(self.inside.temporary), "LANG": "C.UTF-8"}
        if command.setup:
            base |= index_settings(os.environ)
        return {**base, "VIRTUAL_ENV": str(self.inside.env), **command.env}

    def _pump(self, process: subprocess.Popen[bytes], on_line: OnLine, timeout_s: float | None) -> bool:
        """Hands lines on as they come; True when time ran out. Ends with the shell, whoever holds its pipes."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            for pipe, stream in ((process.stdout, Stream.OUT), (process.stderr, Stream.ERR)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, Lines(partial(on_line, stream)))
            while selector.get_map():
                if deadline is not None and time.monotonic() > deadline:
                    return True
                if self._cancel.is_set():
                    return False
                ready = selector.select(POLL_S)
                for key, _ in ready:
                    if data := os.read(key.fd, 65536):
                        key.data.feed(data)
                    else:
                        key.data.end()
                        selector.unregister(key.fileobj)
                if not ready and process.poll() is not None:
                    break
            for key in selector.get_map().values():
                key.data.end()
        return self._wait(process, deadline)

    def _wait(self, process: subprocess.Popen[bytes], deadline: float | None) -> bool:
        """The shell closed its pipes; it may still run."""
        while process.poll() is None and not self._cancel.is_set():
            if deadline is not None and time.monotonic() > deadline:
                return True
            time.sleep(POLL_S / 10)
        return False


def index_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The host's variables that say how to reach a package index."""
    keep = {name: value for name, value in environment.items() if name.startswith(SETUP_VARIABLES)}
    keep |= {name: value for name, value in environment.items() if name.lower() in SETUP_PROXIES}
    return keep | ({"HOME": environment["HOME"]} if "HOME" in environment else {})


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole group: politely while the shell lives, then for good."""
    try:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()

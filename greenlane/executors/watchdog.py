"""A child that outlives greenlane by a moment: when the pipe to it closes, it ends whatever is still registered."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

PATIENCE_S = 30.0  # how long a restarting daemon is waited for


class Watchdog:
    """Greenlane's side. Registering is one line on a pipe, so it costs nothing and survives SIGKILL."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child = subprocess.Popen(
            [sys.executable, "-E", "-P", __file__],  # -P: `docker` must not be the module beside this one
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at the terminal must not reach it
        )

    def add(self, kind: str, name: str) -> None:
        self._send("+", kind, name)

    def remove(self, kind: str, name: str) -> None:
        self._send("-", kind, name)

    def close(self) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        self._child.wait()

    def _send(self, *words: str) -> None:
        assert self._child.stdin is not None
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._child.stdin.write((" ".join(words) + "\n").encode())
            self._child.stdin.flush()


def main() -> None:
    alive: dict[tuple[str, str], None] = {}
    for line in sys.stdin:
        sign, kind, name = line.rstrip("\n").split(" ", 2)
        if sign == "+":
            alive[kind, name] = None
        else:
            alive.pop((kind, name), None)
    for kind, name in alive:
        if kind == "group":
            kill_group(int(name))
    containers = [name for kind, name in alive if kind == "container"]
    if containers:
        remove_containers(containers)


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def remove_containers(names: list[str]) -> None:
    """`names` are `socket|container name`: they are known before the container exists, so none can slip through."""
    import docker  # heavy, and needed only now

    deadline = time.monotonic() + PATIENCE_S
    for name in names:
        base_url, _, container = name.partition("|")
        while time.monotonic() < deadline:
            try:
                client = docker.APIClient(base_url=base_url, version="auto", timeout=10)
                client.remove_container(container, force=True, v=True)
                break
            except docker.errors.NotFound:
                break
            except Exception:  # the daemon is away or busy: ask again until patience ends
                time.sleep(0.2)


if __name__ == "__main__":
    main()

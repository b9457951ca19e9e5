"""The host executor: exit codes, time limits, process groups, environment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenlane.executors import Command, Folders, Stream
from greenlane.executors.host import HostExecutor, index_settings
from greenlane.executors.watchdog import Watchdog


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    dog = Watchdog()
    yield dog
    dog.close()


@pytest.fixture
def executor(tmp_path: Path, watchdog: Watchdog) -> HostExecutor:
    names = ("source", "build", "prefix", "artifacts", "env", "home", "temporary", "ccache")
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    return HostExecutor(Folders(**folders), watchdog, threading.Event())


def run(executor: HostExecutor, script: str, **more: object) -> tuple[object, list[tuple[Stream, str]]]:
    heard: list[tuple[Stream, str]] = []
    command = Command(script, executor.inside.build, **more)  # type: ignore[arg-type]
    return executor.run(command, lambda stream, line: heard.append((stream, line))), heard


def gone(process: int) -> bool:
    for _ in range(50):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_streams_and_exit_code_come_back(executor: HostExecutor) -> None:
    ended, heard = run(executor, "echo out; echo err >&2; exit 5")
    assert ended.code == 5  # type: ignore[attr-defined]
    assert sorted(heard) == [(Stream.ERR, "err"), (Stream.OUT, "out")]


def test_the_first_failing_command_ends_the_script(executor: HostExecutor) -> None:
    ended, heard = run(executor, "false\necho never")
    assert (ended.code, heard) == (1, [])  # type: ignore[attr-defined]


def test_a_command_that_overstays_is_ended_with_its_children(executor: HostExecutor) -> None:
    ended, heard = run(executor, "trap '' TERM; sleep 300 & echo $!; wait; sleep 300", timeout_s=0.5)
    assert ended.timed_out  # type: ignore[attr-defined]
    assert gone(int(heard[0][1]))


def test_a_background_child_that_holds_the_pipe_doesnt_hold_the_stage(executor: HostExecutor) -> None:
    ended, heard = run(executor, "sleep 300 & echo $!")
    assert ended.code == 0  # type: ignore[attr-defined]
    assert gone(int(heard[0][1]))


def test_nothing_of_the_hosts_environment_enters(executor: HostExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("PIP_INDEX_URL", "somewhere")
    _, heard = run(executor, "env", env={"NAMED": "1"})
    names = {line.partition("=")[0] for _, line in heard}
    assert "NAMED" in names
    assert not names & {"SOME_TOKEN", "PIP_INDEX_URL"}


def test_set_up_commands_see_how_to_reach_the_package_index() -> None:
    host = {"PIP_INDEX_URL": "a", "HTTPS_PROXY": "b", "HOME": "/home/me", "SOME_TOKEN": "secret"}
    assert index_settings(host) == {"PIP_INDEX_URL": "a", "HTTPS_PROXY": "b", "HOME": "/home/me"}


def test_killing_greenlane_kills_the_commands_group(tmp_path: Path) -> None:
    """SIGKILL gives no handler a chance: the watchdog's pipe closes, and it ends the group."""
    program = (
        "import subprocess, sys, time\n"
        "from greenlane.executors.watchdog import Watchdog\n"
        "dog = Watchdog()\n"
        "child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "dog.add('group', str(child.pid))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(child)


def test_a_cancelled_command_ends(executor: HostExecutor) -> None:
    threading.Timer(0.3, executor._cancel.set).start()
    began = time.monotonic()
    run(executor, "sleep 300")
    assert time.monotonic() - began < 60

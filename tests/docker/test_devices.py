"""Devices of the host in a lane: handed on where they are, refused in one clear line where they aren't."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Command
from greenlane.executors.daemon import Daemon
from greenlane.executors.docker import DockerExecutor, Fence, groups_of
from greenlane.executors.watchdog import Watchdog
from greenlane.lanes.folders import LaneFolder
from tests.docker.conftest import box
from tests.lanes.conftest import Project

Make = Callable[[Fence], DockerExecutor]


@pytest.fixture
def fenced(boxed: Project, daemon: Daemon, tmp_path: Path) -> Iterator[Make]:
    """An executor in the bare image with the devices of a fence."""
    box(boxed)
    image = boxed.greenlane("images", "build").stdout.split()[-3]
    folder = LaneFolder(tmp_path / "lane", tmp_path)
    host = folder.seen_from_host(boxed.root, tmp_path / "ccache")
    folder.prepare(host)
    made: list[DockerExecutor] = []
    watchdog = Watchdog()

    def make(fence: Fence) -> DockerExecutor:
        executor = DockerExecutor(daemon, "cpu", host, fence, watchdog, threading.Event())
        executor.image = daemon.client.inspect_image(image)["Id"].removeprefix("sha256:")
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.close()
    watchdog.close()


def said(executor: DockerExecutor, script: str) -> list[str]:
    lines: list[str] = []
    executor.run(Command(script, executor.inside.build), lambda stream, line: lines.append(line))
    return lines


def test_a_card_that_is_not_there_is_refused_in_one_line(fenced: Make) -> None:
    with pytest.raises(EnvironmentMissing, match=r"^this machine has no /dev/nonesuch\d, which the lane needs$"):
        fenced(Fence(devices=("/dev/nonesuch0",))).start()


def test_nvidia_cards_without_their_container_toolkit_are_refused_in_one_line(fenced: Make, daemon: Daemon) -> None:
    if daemon.podman:
        pytest.skip("podman does not know docker's request for cards")
    if any("nvidia" in name for name in daemon.client.info().get("Runtimes", {})):
        pytest.skip("the NVIDIA container toolkit is installed here, so nothing is refused")
    with pytest.raises(EnvironmentMissing, match="can't hand on NVIDIA cards; install the NVIDIA container toolkit"):
        fenced(Fence(nvidia=("0",))).start()


def test_a_device_comes_in_with_the_group_that_owns_it(fenced: Make) -> None:
    device = next(path for path in map(Path, ("/dev/fuse", "/dev/tty0", "/dev/console", "/dev/tty")) if path.exists())
    executor = fenced(Fence(devices=(str(device),)))
    executor.start()
    assert said(executor, f"test -c {device} && echo there; ls /dev/kmsg 2>/dev/null || echo no other") == [
        "there",
        "no other",
    ]
    groups = {int(word) for word in said(executor, "id -G")[0].split()}
    assert set(groups_of([str(device)])) <= groups


def test_the_groups_are_those_that_own_the_device_files() -> None:
    files = [path for path in Path("/dev").iterdir() if path.exists() and not path.is_dir()]
    owners = {path.stat().st_gid for path in files if stat.S_ISCHR(path.stat().st_mode)} - {0}
    assert set(groups_of([str(path) for path in files])) == owners

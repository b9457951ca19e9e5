"""A real daemon, a real base image, and a small project whose lanes attack their container."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from greenlane.executors import daemon as daemons
from greenlane.executors.daemon import Daemon
from greenlane.images.inputs import project_of
from greenlane.images.store import stored
from tests.lanes.conftest import Project

BASE = "debian:forky"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.docker)


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """The daemon of this machine; where none runs, one that is started for the tests."""
    found = daemons.find()
    if found is not None:
        yield found
        return
    dockerd = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if dockerd is None or os.getuid() != 0:
        pytest.fail("no container daemon answers and none can be started: install docker.io and run as root")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([dockerd], stdout=log, stderr=subprocess.STDOUT)
        try:
            yield _wait_for(process)
        finally:
            process.terminate()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes]) -> Daemon:
    for _ in range(300):
        daemons._connect.cache_clear()
        found = daemons.find()
        if found is not None:
            return found
        assert process.poll() is None, "dockerd ended at once"
        time.sleep(0.2)
    raise AssertionError("dockerd does not answer after a minute")


@pytest.fixture(scope="session")
def plain(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The base and the bare image of `boxed`, made once: images of equal inputs are shared by all projects."""
    project = made(tmp_path_factory.mktemp("plain"))
    for action in ("seed", "build"):
        done = project.greenlane("images", action)
        assert done.returncode == 0, done.stdout + done.stderr
    yield
    forget(daemon, project)


@pytest.fixture
def boxed(tmp_path: Path, daemon: Daemon, plain: None) -> Iterator[Project]:
    """A project whose one lane runs in a bare base image, as any user may read it."""
    project = made(tmp_path)
    yield project
    forget(daemon, project)


def made(folder: Path) -> Project:
    for above in (folder, *list(folder.parents)[:2]):
        above.chmod(0o755)
    project = Project(folder / "project")
    (project.root / "docker").mkdir(parents=True)
    (project.root / ".gitignore").write_text(".greenlane/\n")
    (project.root / "docker/box.Dockerfile").write_text(f"FROM {BASE}\n")
    project.git("init", "-q", "-b", "main")
    box(project)
    return project


def forget(daemon: Daemon, project: Project) -> None:
    """Removes the images that were built for the project."""
    for image in stored(daemon.client, project_of(project.root)):
        daemon.client.remove_image(image.id, force=True)


def box(project: Project, test: str = "true", **more: Any) -> None:
    """The lane's test stage runs `test`; the tree is committed."""
    stages = {"build": "true", "test": test}
    settings: dict[str, Any] = {"memory": "256MiB", "pids": 64, "require": ["checked", "built", "tested"], **more}
    project.write(executor="docker", dockerfile="docker/box.Dockerfile", stages=stages, **settings)
    project.commit()


def log(project: Project, stage: str = "test") -> str:
    return (project.root / f".greenlane/lanes/cpu/logs/{stage}.log").read_text()


def ours(daemon: Daemon) -> list[str]:
    """Containers that a greenlane made and that still run."""
    return [container["Id"] for container in daemon.client.containers(filters={"label": "greenlane.lane=cpu"})]

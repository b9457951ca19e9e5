"""A daemon that is restarted beneath a lane: on a second daemon of its own, so that nobody else's containers end."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from greenlane.executors.daemon import Daemon
from tests.docker.conftest import BASE, box
from tests.lanes.conftest import Project
from tests.lanes.test_run import wait_for


class OwnDaemon:
    """A dockerd with its own data, socket and process files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self.log = folder / "dockerd.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._ran_before = False

    def start(self) -> None:
        binary = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if binary is None or os.getuid() != 0 or shutil.which("unshare") is None:
            pytest.skip("a daemon of the test's own needs dockerd, unshare and root")
        places = ["--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec", "--host", self.url]
        network = ["--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        # In a network namespace of its own: a daemon without a bridge removes the one that it finds, another daemon's.
        command = ["unshare", "--net", binary, *places, "--pidfile", f"{self.folder}/pid", *network]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self._has_ended_or_answers, 60)
        if self._process.poll() is None:
            return
        why = f"a second daemon can't run here: {''.join(self.log.read_text().splitlines()[-1:]) or 'it said nothing'}"
        assert not self._ran_before, why
        pytest.skip(why)

    def _has_ended_or_answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        return (self.folder / "docker.sock").exists() and self.client().ping() is True

    def client(self) -> docker.APIClient:
        return docker.APIClient(base_url=self.url, version="auto")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process, self._ran_before = None, True


@pytest.fixture
def own(daemon: Daemon) -> Iterator[OwnDaemon]:
    folder = Path("/tmp") / f"greenlane-daemon-{os.getpid()}"  # short: the path of a socket has a limit
    folder.mkdir()
    second = OwnDaemon(folder)
    interfaces = {path.name for path in Path("/sys/class/net").iterdir()}
    try:
        second.start()
        assert {path.name for path in Path("/sys/class/net").iterdir()} >= interfaces, "it took another daemon's bridge"
        image = subprocess.Popen(["docker", "save", BASE], stdout=subprocess.PIPE)
        subprocess.run(["docker", "--host", second.url, "load", "--quiet"], stdin=image.stdout, check=True)
        yield second
    finally:
        second.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_daemon_restarted_beneath_a_lane_costs_no_more_than_the_stage_that_was_cut(
    boxed: Project, own: OwnDaemon
) -> None:
    box(boxed, "echo x >> {artifacts}/tests; while ! test -f {artifacts}/go; do sleep 0.2; done")
    environment = {**boxed.environment(), "DOCKER_HOST": own.url}
    running = subprocess.Popen(boxed.command("run", "cpu"), cwd=boxed.root, env=environment)
    artifacts = boxed.root / ".greenlane/lanes/cpu/artifacts"
    wait_for(lambda: (artifacts / "tests").exists(), 120)
    own.stop()
    assert running.wait(60) == 3
    cut = boxed.stages()["test"]
    assert cut["outcome"] == "fail" and cut["first_error"]["rule"] == "infra"  # type: ignore[index]
    own.start()
    wait_for(lambda: not own.client().containers(), 5)
    (artifacts / "go").touch()
    began = time.monotonic()
    done = boxed.greenlane("run", "cpu", DOCKER_HOST=own.url)
    assert done.returncode == 0, (done.stdout + done.stderr, time.monotonic() - began)
    assert "build kept from the run that was cut" in done.stdout
    assert not own.client().containers(all=True), "what the dead daemon left was swept"

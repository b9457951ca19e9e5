"""Whatever ends greenlane, nothing of it runs five seconds later, and the next call goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from greenlane.executors.daemon import Daemon
from tests.docker.conftest import box, log, ours
from tests.lanes.conftest import Project
from tests.lanes.test_run import wait_for
from tests.lanes.test_weights import EXACT


def begun(project: Project) -> subprocess.Popen[bytes]:
    """A run whose test stage ignores SIGTERM and waits for ever."""
    script = "trap '' TERM INT HUP; echo x >> {artifacts}/tests; while ! test -f {artifacts}/go; do sleep 1; done"
    box(project, script)
    running = subprocess.Popen(
        project.command("run", "cpu"), cwd=project.root, env=project.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: (artifacts(project) / "tests").exists(), 120)
    return running


def artifacts(project: Project) -> Path:
    return project.root / ".greenlane/lanes/cpu/artifacts"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_after_the_end_and_the_next_call_goes_on(
    boxed: Project, daemon: Daemon, number: signal.Signals
) -> None:
    running = begun(boxed)
    assert len(ours(daemon)) == 1
    running.send_signal(number)
    ended = time.monotonic()
    running.wait(30)
    wait_for(lambda: not ours(daemon), 5)
    assert time.monotonic() - ended < 30
    assert boxed.records() == []
    (artifacts(boxed) / "go").touch()
    done = boxed.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build kept from the run that was cut" in done.stdout
    assert not daemon.client.containers(all=True, filters={"label": "greenlane.lane=cpu"})


def test_greenlane_and_its_watchdog_killed_together_leave_no_container(boxed: Project, daemon: Daemon) -> None:
    """The container's first process reads from a pipe that only greenlane holds open."""
    running = begun(boxed)
    for process in (*children(running.pid), running.pid):
        os.kill(process, signal.SIGKILL)
    running.wait()
    wait_for(lambda: not ours(daemon), 5)
    (artifacts(boxed) / "go").touch()
    assert boxed.greenlane("run", "cpu").returncode == 0
    assert not daemon.client.containers(all=True, filters={"label": "greenlane.lane=cpu"}), "swept at the next start"


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_a_container_stopped_from_outside_is_no_verdict_on_the_lane(boxed: Project, daemon: Daemon) -> None:
    running = begun(boxed)
    daemon.client.kill(ours(daemon)[0])
    assert running.wait(60) == 3
    test = boxed.stages()["test"]
    assert test["outcome"] == "fail" and test["first_error"]["rule"] == "infra"  # type: ignore[index]
    (artifacts(boxed) / "go").touch()
    done = boxed.greenlane("run", "cpu")
    assert done.returncode == 0 and "build kept from the run that was cut" in done.stdout


def test_a_stage_that_overstays_is_killed_with_its_container(boxed: Project, daemon: Daemon) -> None:
    box(boxed, "trap '' TERM; while true; do sleep 1; done", stage_timeouts={"test": "2s"})
    done = boxed.greenlane("run", "cpu")
    assert done.returncode == 1
    assert "time limit" in str(boxed.stages()["test"]["reason"])
    assert ours(daemon) == []


def test_a_background_process_of_a_stage_doesnt_hold_it(boxed: Project) -> None:
    box(boxed, "sleep 600 & echo done")
    assert boxed.greenlane("run", "cpu").returncode == 0
    assert "done" in log(boxed)


def test_a_shell_has_the_walls_of_the_lane(boxed: Project) -> None:
    box(boxed)
    done = subprocess.run(
        boxed.command("shell", "cpu"), cwd=boxed.root, env=boxed.environment(), capture_output=True, text=True,
        input="pwd; id -u; ls /sys/class/net; touch /greenlane/source/x || echo refused\n", check=False, timeout=120,
    )  # fmt: skip
    user = "65532" if os.getuid() == 0 else str(os.getuid())
    assert done.stdout.splitlines()[-4:] == ["/greenlane/build", user, "lo", "refused"]


def test_a_record_is_reproduced_in_its_own_image(boxed: Project) -> None:
    box(boxed, "echo same")
    assert boxed.greenlane("run", "cpu").returncode == 0
    record = next((boxed.root / ".greenlane/ledger/records").rglob("*.json")).stem
    image = boxed.records()[-1]["digests"]["image"]  # type: ignore[index]
    (boxed.root / "docker/box.Dockerfile").write_text("FROM debian:forky\nRUN echo another\n")
    boxed.commit()
    done = boxed.greenlane("reproduce", record)
    assert done.returncode == 0, done.stdout + done.stderr
    assert boxed.records()[-1]["digests"]["image"] == image  # type: ignore[index]


def test_an_unchanged_lane_is_answered_without_a_container(boxed: Project, daemon: Daemon) -> None:
    box(boxed)
    boxed.greenlane("run", "cpu")
    boxed.greenlane("run", "cpu")
    assert boxed.records()[-1]["reused_from"] is not None
    (boxed.root / "docker/box.Dockerfile").write_text("FROM debian:forky\nRUN echo changed\n")
    boxed.greenlane("run", "cpu")
    assert boxed.records()[-1]["reused_from"] is None


def test_a_model_in_the_image_is_hashed_there_once(boxed: Project) -> None:
    box(boxed, "sha256sum /etc/debian_version", model="/etc/debian_versio?", gates={"exact": EXACT})
    assert boxed.greenlane("run", "cpu").returncode == 0
    model = boxed.records()[-1]["digests"]["model"]  # type: ignore[index]
    assert log(boxed).splitlines()[-1].split()[0] == model
    boxed.greenlane("run", "cpu")
    assert boxed.records()[-1]["reused_from"] is not None

"""Runs a lane's commands in one container that can reach nothing but the lane's own folders."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Command, Exit, Folders, OnLine, owner
from greenlane.executors.daemon import Daemon
from greenlane.executors.exec import Session
from greenlane.executors.watchdog import Watchdog

ROOT = Path("/greenlane")
INSIDE = Folders(
    source=ROOT / "source",
    build=ROOT / "build",
    prefix=ROOT / "prefix",
    artifacts=ROOT / "artifacts",
    env=Path("/opt/env"),
    home=ROOT / "home",
    temporary=Path("/tmp"),
    ccache=ROOT / "ccache",
)
LIFELINE = ROOT / "lifeline"
TOOL = ROOT / "tool"
LABEL = "greenlane.lane"
OWNER = "greenlane.owner"
EMPTY = "size=4k,mode=0555"
PODMAN_EMPTY = f"{EMPTY},notmpcopyup"  # else podman copies into it what it is to hide
PODMAN_MOST = 32768  # what a podman service leaves itself of processes; `pids` limits a lane's
MASKED = (".git", ".greenlane")  # of the source: credentials in git's configuration, other lanes' state


@dataclass(frozen=True, slots=True)
class Fence:
    """What a lane may use."""

    memory_bytes: int | None = None
    pids: int | None = None
    devices: tuple[str, ...] = ()  # of the host: "/dev/kfd"
    nvidia: tuple[str, ...] = ()  # indices of NVIDIA cards
    read_only: dict[str, str] = field(default_factory=dict)  # further folders, host -> inside


class DockerExecutor:
    name = "docker"
    inside = INSIDE
    python = "python3"

    def __init__(
        self, daemon: Daemon, lane: str, host: Folders, fence: Fence, watchdog: Watchdog, cancel: threading.Event
    ) -> None:
        self.image: str | None = None  # hex id; the image stage sets it before `start`
        self.daemon = daemon
        self._lane = lane
        self._host = host
        self._fence = fence
        self._watchdog = watchdog
        self._cancel = cancel
        self.container = f"greenlane-{secrets.token_hex(8)}"
        self._lifeline: int | None = None
        self._oom_kills = 0

    def start(self) -> None:
        """Starts the container: the network is gone from here on."""
        if self._lifeline is not None:
            return
        if (absent := next((one for one in self._fence.devices if not Path(one).exists()), None)) is not None:
            raise EnvironmentMissing(f"this machine has no {absent}, which the lane needs")
        self._own_folders()
        self._lifeline = self._open_lifeline()
        self._watchdog.add("container", f"{self.daemon.base_url}|{self.container}")
        try:
            self._create_and_start(init=True)
        except EnvironmentMissing as error:
            if not any(word in str(error) for word in ("catatonit", "docker-init", "container-init")):
                raise
            self._create_and_start(init=False)

    def run(self, command: Command, on_line: OnLine) -> Exit:
        session = Session(self.daemon.client, self.container, self._cancel)
        environment = {"HOME": str(INSIDE.home), "TMPDIR": str(INSIDE.temporary), "LANG": "C.UTF-8", **command.env}
        try:
            ended = session.run(command.script, str(command.cwd), environment, command.timeout_s, on_line)
        except Exception as error:  # the SDK lets errors of three libraries through
            return Exit(255, lost=self._why_lost(error))
        if ended.timed_out or self._cancel.is_set():
            self._kill()
        elif ended.code != 0:
            return Exit(ended.code, out_of_memory=self._was_out_of_memory(), lost=self._why_gone())
        return ended

    def close(self) -> None:
        if self._lifeline is None:
            return
        import docker

        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        try:
            self.daemon.client.remove_container(self.container, force=True, v=True)
        except docker.errors.NotFound:
            pass
        except Exception:  # the daemon is away: the watchdog goes on asking after greenlane has ended
            return
        self._lifeline = None
        self._watchdog.remove("container", f"{self.daemon.base_url}|{self.container}")

    def _create_and_start(self, *, init: bool) -> None:
        import docker
        import requests

        client = self.daemon.client
        user, group = self.daemon.user()
        try:
            client.create_container(
                self.image,
                # Reads from a pipe that greenlane holds open: its end is the container's end, with or without a daemon.
                command=["/bin/sh", "-c", f"cat {LIFELINE}"],
                entrypoint=[],
                name=self.container,
                user=f"{user}:{group}",
                labels={LABEL: self._lane, OWNER: owner.me()},
                working_dir="/",
                network_disabled=True,
                volumes=[inside for inside, _, _ in self._mounts()],
                host_config=self._host_config(init),
            )
            client.start(self.container)
        except docker.errors.APIError as error:
            with contextlib.suppress(docker.errors.APIError, requests.RequestException):
                client.remove_container(self.container, force=True)
            raise EnvironmentMissing(self._refusal(str(error.explanation or error))) from error
        except (requests.RequestException, OSError) as error:
            raise EnvironmentMissing(f"the container daemon went away: {error}") from error

    def _host_config(self, init: bool) -> Any:
        import docker

        fence, podman = self._fence, self.daemon.podman
        requests = [docker.types.DeviceRequest(device_ids=list(fence.nvidia), capabilities=[["gpu"]])]
        return self.daemon.client.create_host_config(
            binds={host: {"bind": inside, "mode": mode} for inside, host, mode in self._mounts()},
            tmpfs={str(INSIDE.source / name): PODMAN_EMPTY if podman else EMPTY for name in self._masked()},
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=True,
            init=init,
            mem_limit=fence.memory_bytes,
            memswap_limit=fence.memory_bytes,
            pids_limit=fence.pids,
            devices=[f"{device}:{device}:rwm" for device in fence.devices],
            device_requests=requests if fence.nvidia else None,
            group_add=[str(group) for group in groups_of(fence.devices)] or None,
            ulimits=_podman_limits() if podman else None,
            userns_mode="keep-id" if podman and self.daemon.rootless else None,
            ipc_mode="private",
        )

    def _mounts(self) -> list[tuple[str, str, str]]:
        """(inside, on the host, mode)"""
        host, inside = self._host, INSIDE
        mounts = [(str(inside.source), str(host.source), "ro"), (str(LIFELINE), str(self._lifeline_path()), "ro")]
        for name in ("build", "prefix", "artifacts", "home", "temporary", "ccache"):
            mounts.append((str(getattr(inside, name)), str(getattr(host, name).resolve()), "rw"))
        return mounts + [(there, here, "ro") for here, there in self._fence.read_only.items()]

    def _masked(self) -> list[str]:
        return [name for name in MASKED if (self._host.source / name).is_dir()]

    def _own_folders(self) -> None:
        """The lane's user must be able to write them; a caller that is not root owns them already."""
        if os.getuid() != 0 or self.daemon.rootless:
            return
        user, group = self.daemon.user()
        host = self._host
        for folder in (host.build, host.prefix, host.artifacts, host.home, host.temporary, host.ccache):
            os.chown(folder, user, group, follow_symlinks=False)

    def _lifeline_path(self) -> Path:
        return self._host.build.parent / "lifeline"

    def _open_lifeline(self) -> int:
        path = self._lifeline_path()
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o644)
        path.chmod(0o644)
        return os.open(path, os.O_RDWR)  # both ends, so that opening doesn't wait for a reader

    def _refusal(self, said: str) -> str:
        said = " ".join(said.split())
        if "could not select device driver" in said:
            return "the daemon can't hand on NVIDIA cards; install the NVIDIA container toolkit"
        if "No such image" in said:
            return f"the image {str(self.image)[:12]} is gone; `greenlane images build {self._lane}` makes it again"
        return f"the container can't be started: {said}"

    def _was_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of the lane's processes since it was asked last (cgroup v1 and v2)."""
        lines: list[str] = []
        script = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null"
        with contextlib.suppress(Exception):
            session = Session(self.daemon.client, self.container, self._cancel)
            session.run(script, "/", {}, 10.0, lambda stream, line: lines.append(line))
        kills = sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        before, self._oom_kills = self._oom_kills, max(kills, self._oom_kills)
        return kills > before

    def _why_gone(self) -> str | None:
        """Why the container no longer runs; None while it does."""
        try:
            state = self.daemon.client.inspect_container(self.container)["State"]
        except Exception as error:
            return self._why_lost(error)
        return None if state["Running"] else "the container was stopped from outside"

    def _why_lost(self, error: Exception) -> str:
        return f"the container or its daemon went away ({type(error).__name__}); run the same command to go on"

    def _kill(self) -> None:
        with contextlib.suppress(Exception):
            self.daemon.client.kill(self.container, "SIGKILL")


def _podman_limits() -> list[Any]:
    """Podman asks for more than a service without CAP_SYS_RESOURCE may give: its own limits, which it lowers itself."""
    import docker

    limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: resource.getrlimit(number)[1] for name, number in limits.items()}
    wanted = {name: min(value, PODMAN_MOST) if value >= 0 else PODMAN_MOST for name, value in hard.items()}
    return [docker.types.Ulimit(name=name, soft=value, hard=value) for name, value in wanted.items()]


def groups_of(devices: Sequence[str]) -> list[int]:
    """The groups that own the device files, of which the lane's user must be one."""
    found = set()
    for device in devices:
        path = Path(device)
        for file in [path, *path.glob("*")] if path.is_dir() else [path]:
            status = file.stat()
            if stat.S_ISCHR(status.st_mode) and status.st_gid != 0:
                found.add(status.st_gid)
    return sorted(found)


def sweep(daemon: Daemon) -> list[str]:
    """Removes containers whose greenlane has ended: what a killed one left while its daemon was away."""
    removed = []
    for container in daemon.client.containers(all=True, filters={"label": LABEL}):
        if not owner.has_ended(container["Labels"].get(OWNER, "")):
            continue
        with contextlib.suppress(Exception):
            daemon.client.remove_container(container["Id"], force=True, v=True)
            removed.append(container["Id"])
    return removed

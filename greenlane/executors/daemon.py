"""Finds a container daemon: what DOCKER_HOST names, Docker's socket, then podman's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from greenlane.errors import EnvironmentMissing

TIMEOUT_S = 120


@dataclass(frozen=True)
class Daemon:
    client: Any  # docker.APIClient
    base_url: str
    podman: bool
    rootless: bool

    def user(self) -> tuple[int, int]:
        """Whom lanes run as: the caller, never root of the host. Rootless Docker maps its own root to the caller."""
        if self.rootless and not self.podman:
            return 0, 0
        return (os.getuid(), os.getgid()) if os.getuid() != 0 else (NOBODY, NOBODY)


NOBODY = 65532  # by convention of container images, a user that owns nothing


def find() -> Daemon | None:
    """The first daemon that answers."""
    for base_url in candidates():
        daemon = _connect(base_url)
        if daemon is not None:
            return daemon
    return None


def required() -> Daemon:
    daemon = find()
    if daemon is None:
        raise EnvironmentMissing(
            f"no container daemon answers (tried {', '.join(candidates())}); start dockerd or the podman socket, "
            "set DOCKER_HOST, or run with --executor host"
        )
    return daemon


def candidates() -> list[str]:
    if host := os.environ.get("DOCKER_HOST"):
        return [host]
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    docker_sockets = ("/var/run/docker.sock", f"{runtime}/docker.sock")
    podman_sockets = (f"{runtime}/podman/podman.sock", "/run/podman/podman.sock")
    return [f"unix://{path}" for path in (*docker_sockets, *podman_sockets)]


@cache
def _connect(base_url: str) -> Daemon | None:
    scheme, _, path = base_url.partition("://")
    if scheme == "unix" and not Path(path).exists():
        return None
    import docker
    import requests

    try:
        client = docker.APIClient(base_url=base_url, version="auto", timeout=TIMEOUT_S, tls=_tls(base_url))
        answer = client.version()
        podman = any("podman" in part.get("Name", "").lower() for part in answer.get("Components") or ())
        rootless = any("rootless" in option for option in client.info().get("SecurityOptions") or ())
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return None
    return Daemon(client, base_url, podman, rootless)


def _tls(base_url: str) -> Any:
    """As the docker command does: DOCKER_TLS_VERIFY and DOCKER_CERT_PATH."""
    if not base_url.startswith("tcp://") or not os.environ.get("DOCKER_TLS_VERIFY"):
        return False
    from docker.tls import TLSConfig

    folder = Path(os.environ.get("DOCKER_CERT_PATH", Path.home() / ".docker"))
    certificate = (str(folder / "cert.pem"), str(folder / "key.pem"))
    return TLSConfig(client_cert=certificate, ca_cert=str(folder / "ca.pem"), verify=True)

"""Builds an image by the docker command, once per digest of its inputs, and keeps the log."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from greenlane.errors import EnvironmentMissing, LaneRed
from greenlane.images.inputs import Inputs
from greenlane.record.lock import locked

LABEL = "greenlane.inputs"
PROJECT = "greenlane.project"
TAIL = 20  # lines of the log that are shown
SEARCHED = 300  # and those that are searched for a cause outside of the Dockerfile
# What a build says when the network, an archive or the disk failed it, not the Dockerfile.
OUTSIDE = re.compile(
    r"Temporary failure (?:resolving|in name resolution)|Could not (?:resolve|connect)"
    r"|Connection (?:timed out|refused|reset)"
    r"|Network is unreachable|no such host|i/o timeout|TLS handshake timeout|failed to (?:do request|resolve source)"
    r"|Failed to establish a new connection|Read timed out|\b50[234] (?:Bad Gateway|Service|Gateway)|toomanyrequests"
    r"|[Nn]o space left on device|Hash Sum mismatch|Cannot connect to the Docker daemon|connection error: desc"
)
FIRST_CLI_WITH_BUILDX = 23  # older ones build by BuildKit themselves, newer ones only through the plugin


@dataclass(frozen=True, slots=True)
class Cli:
    path: str
    buildkit: bool
    podman: bool = False

    def build(self, base_url: str) -> list[str]:
        """The words that begin a build on that daemon; docker hears of it by DOCKER_HOST."""
        return [self.path, *(["--remote", "--url", base_url] if self.podman else []), "build"]


class BuildFailed(LaneRed):
    """The Dockerfile did not build."""


def find(client: Any, inputs: Inputs) -> str | None:
    """The hex id of the image that was made of these inputs, where it stands."""
    import docker

    try:
        return str(client.inspect_image(inputs.tag)["Id"]).removeprefix("sha256:")
    except docker.errors.ImageNotFound:
        return None
    except docker.errors.APIError as error:
        raise EnvironmentMissing(f"the container daemon refuses: {error.explanation or error}") from error


def layers(client: Any, image: str) -> str:
    """Hex SHA-256 over the files of an image: equal for two images that differ in labels or environment alone."""
    inspected = client.inspect_image(image)
    return hashlib.sha256(json.dumps(inspected["RootFS"]["Layers"]).encode()).hexdigest()


def ensure(
    client: Any,
    base_url: str,
    inputs: Inputs,
    state: Path,
    on_line: Callable[[str], None],
    cancel: Callable[[], bool] = lambda: False,
) -> tuple[str, bool]:
    """The hex id of the image, and whether it had to be built. Two builds of one image wait for each other."""
    with locked(state / "images" / f"{inputs.digest()[:16]}.lock"):
        known = find(client, inputs)
        if known is not None:
            return known, False
        cli = command_line()
        if is_podman(client):
            cli = replace(cli, buildkit=False)  # podman's socket has the older build interface alone
        _build(cli, base_url, inputs, log_of(state, inputs), on_line, cancel)
        built = find(client, inputs)
    if built is None:
        raise EnvironmentMissing(f"the image {inputs.tag} was built, but {base_url} doesn't know it")
    return built, True


def log_of(state: Path, inputs: Inputs) -> Path:
    return state / "images" / f"{inputs.tag.removeprefix('greenlane/').replace(':', '-')}.log"


def is_podman(client: Any) -> bool:
    return any("podman" in part.get("Name", "").lower() for part in client.version().get("Components") or ())


def _build(
    cli: Cli, base_url: str, inputs: Inputs, log: Path, on_line: Callable[[str], None], cancel: Callable[[], bool]
) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with _context(inputs) as folder, log.open("w", encoding="utf-8") as file:
        command = arguments(cli, base_url, inputs)
        file.write("$ " + " ".join(command) + "\n")
        environment = {**os.environ, "DOCKER_HOST": base_url, "DOCKER_BUILDKIT": "1" if cli.buildkit else "0"}
        environment |= inputs.host_args
        tail = _stream(command, folder, environment, file, on_line, cancel)
    if tail is None:
        return
    if (why := next(filter(OUTSIDE.search, tail), None)) is not None:
        raise EnvironmentMissing(
            f"the image {inputs.name} can't be built here (log: {log}): {why.strip()}; run it again"
        )
    raise BuildFailed(f"the image {inputs.name} does not build (log: {log})\n" + "\n".join(tail))


def arguments(cli: Cli, base_url: str, inputs: Inputs) -> list[str]:
    """Values of proxies and indexes travel by the environment, so that no log shows a password in them."""
    command = [*cli.build(base_url), "--network", "host", "--label", f"{LABEL}={inputs.digest()}"]
    command += ["--label", f"{PROJECT}={inputs.project}", "--tag", inputs.tag, "--file", inputs.dockerfile.name]
    command += ["--target", inputs.target] if inputs.target else []
    command += ["--progress", "plain"] if cli.buildkit else []
    for name, value in inputs.args.items():
        command += ["--build-arg", f"{name}={value}"]
    for name in inputs.host_args:
        command += ["--build-arg", name]
    return [*command, "."]


def _stream(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    file: Any,
    on_line: Callable[[str], None],
    cancel: Callable[[], bool],
) -> list[str] | None:
    """Runs the build; None when it succeeded, else its last lines."""
    tail: deque[str] = deque(maxlen=SEARCHED)
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            file.write(line)
            on_line(line.rstrip("\n"))
            tail.append(line.rstrip("\n"))
            if cancel():
                break
    finally:
        with contextlib.suppress(ProcessLookupError):
            if process.poll() is None and cancel():
                process.kill()
        process.stdout.close()
        code = process.wait()
    if cancel():
        raise EnvironmentMissing("stopped while the image was being built")
    return None if code == 0 else list(tail)


@contextmanager
def _context(inputs: Inputs) -> Iterator[Path]:
    """A folder with exactly the files that the digest covers."""
    with tempfile.TemporaryDirectory(prefix="greenlane-image-") as name:
        folder = Path(name)
        for path, content in inputs.context():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            source = inputs.dockerfile.parent / path
            file.chmod(0o755 if source.exists() and os.access(source, os.X_OK) else 0o644)
        yield folder


@cache
def command_line() -> Cli:
    """A docker or podman command, one that builds by BuildKit before one that doesn't."""
    found = [cli for path in _on_path() if (cli := _judged(path)) is not None]
    if not found:
        raise EnvironmentMissing("no docker command on PATH; install the Docker or podman command line to build images")
    return next((cli for cli in found if cli.buildkit), found[0])


def _on_path() -> list[str]:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    names = [shutil.which(name, path=folder) for name in ("docker", "podman") for folder in folders]
    return list(dict.fromkeys(os.path.realpath(name) for name in names if name))


def _judged(path: str) -> Cli | None:
    said = _ask(path, "--version")
    version = re.search(r"version (\d+)", said or "")
    if version is None:
        return None
    if "podman" in (said or "").lower():
        return Cli(path, buildkit=False, podman=True)
    old = int(version[1]) < FIRST_CLI_WITH_BUILDX
    return Cli(path, buildkit=old or _ask(path, "buildx", "version") is not None)


def _ask(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None

"""Makes a base image from the distribution's own archive, under the very name that the Dockerfiles ask for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError

_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))
_DEBIAN = re.compile(r"^debian:(?P<suite>[a-z]+)(?:-slim)?$")
_SCRIPTS = Path("/usr/share/debootstrap/scripts")


def bases(dockerfile: Path, args: dict[str, str]) -> list[str]:
    """The images that a Dockerfile starts from, with its ARGs filled in; its own stages left out."""
    known = dict(args)
    stages: set[str] = set()
    found: list[str] = []
    for line in dockerfile.read_text().splitlines():
        if declared := re.match(r"\s*ARG\s+(\w+)=(\S+)", line, re.IGNORECASE):
            known.setdefault(declared[1], declared[2].strip("\"'"))
        elif start := re.match(r"\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", line, re.IGNORECASE):
            name = re.sub(r"\$\{?(\w+)\}?", lambda match: known.get(match[1], ""), start[1])
            if name not in stages and name != "scratch":
                found.append(name)
            if start[2]:
                stages.add(start[2])
    return list(dict.fromkeys(found))


def seed(name: str, docker: str, base_url: str, on_line: Callable[[str], None]) -> None:
    """Makes `name` with debootstrap from the archive that this host's apt uses, and imports it."""
    wanted = _DEBIAN.match(name)
    if wanted is None:
        raise MatrixError(f"{name}: only images like debian:forky can be seeded from an archive; pull this one")
    tool = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if tool is None or os.getuid() != 0:
        raise EnvironmentMissing("seeding needs root and debootstrap; install debootstrap and run as root")
    suite, mirror = wanted["suite"], archive()
    with tempfile.TemporaryDirectory(prefix="greenlane-seed-") as folder:
        script = [] if (_SCRIPTS / suite).exists() else [str(_SCRIPTS / "sid")]
        options = ["--variant=minbase", "--include=ca-certificates"]
        _run([tool, *options, suite, folder, mirror, *script], on_line)
        _import(folder, name, docker, base_url, on_line)


def archive(sources: Iterable[Path] = _SOURCES) -> str:
    """The Debian archive that this host's apt is configured with."""
    files = [file for source in sources for file in (sorted(source.iterdir()) if source.is_dir() else [source])]
    for file in files:
        if file.is_file() and file.suffix in (".list", ".sources"):
            for uri in _uris(file.read_text(errors="replace")):
                if uri.rstrip("/").endswith("/debian"):
                    return uri
    raise EnvironmentMissing(
        "this host's apt names no Debian archive, so there is nothing to seed from; pull the image"
    )


def _uris(text: str) -> Iterable[str]:
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("URIs:"):
            yield from line.removeprefix("URIs:").split()
        elif line.startswith("deb "):
            yield from (word for word in re.sub(r"\[[^]]*\]", "", line).split()[1:2])


def _import(folder: str, name: str, docker: str, base_url: str, on_line: Callable[[str], None]) -> None:
    with subprocess.Popen(["tar", "-C", folder, "--numeric-owner", "-c", "."], stdout=subprocess.PIPE) as tar:
        environment = {**os.environ, "DOCKER_HOST": base_url}
        done = subprocess.run(
            [docker, "import", "-", name],
            stdin=tar.stdout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0 or tar.returncode != 0:
        raise EnvironmentMissing(f"{name} can't be imported: {done.stderr.strip() or 'tar failed'}")
    on_line(done.stdout.strip())


def _run(command: list[str], on_line: Callable[[str], None]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            last = line.strip() or last
            on_line(line.rstrip("\n"))
    if process.returncode != 0:
        raise EnvironmentMissing(f"debootstrap failed: {last}")

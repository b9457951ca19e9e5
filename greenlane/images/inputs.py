"""What goes into an image, and the digest of it: an image is made again exactly when that changes."""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.images.copied import copied
from greenlane.matrix.model import Image

CERTIFICATES = "GREENLANE_CA_CERTIFICATES"
# Where a host already tells its Python tools which certificates to trust, in the order of being asked.
TRUSTED_BY = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
PIP_CONFIGURATION = "/etc/pip.conf"
INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
NEVER = (".git", ".greenlane", "__pycache__", ".nox")
CERTIFICATE_FOLDER = "ca"


@dataclass(frozen=True, slots=True)
class Inputs:
    """One image to build. The build context is the folder of the Dockerfile."""

    dockerfile: Path
    args: Mapping[str, str]
    target: str | None
    certificates: bytes | None
    project: str = ""  # whose image it is: pruning leaves other projects' alone
    host_args: Mapping[str, str] = field(default_factory=dict)  # proxies and indexes: how to download, not what

    @property
    def name(self) -> str:
        """The image's name without its tag."""
        stem = self.dockerfile.name.removesuffix(".Dockerfile").removeprefix("Dockerfile.") or "image"
        words = [stem.lower(), *([self.target.lower()] if self.target else [])]
        return "greenlane/" + "-".join("".join(c if c.isalnum() or c in "._-" else "-" for c in word) for word in words)

    @property
    def tag(self) -> str:
        return f"{self.name}:{self.digest()[:16]}"

    def digest(self) -> str:
        """Hex SHA-256 over the Dockerfile, what it copies, arguments, target and certificates."""
        digest = hashlib.sha256(json.dumps([self.dockerfile.name, dict(self.args), self.target]).encode())
        for path, content in self.context():
            digest.update(f"\0{path}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def context(self) -> Iterator[tuple[str, bytes]]:
        """The files that the build may read, sorted: the Dockerfile and what it copies."""
        own, folder = self.dockerfile.name, self.dockerfile.parent
        beside = [name for name in self._folder() if name != own]
        taken = copied(self.dockerfile.read_text(errors="replace"), beside)
        if taken is None:
            taken = [name for name in beside if not _is_a_dockerfile(name)]
        for name in sorted({own, *taken}):
            yield name, (folder / name).read_bytes()
        if self.certificates is not None:
            yield f"{CERTIFICATE_FOLDER}/host.crt", self.certificates

    def _folder(self) -> Iterator[str]:
        """The files beside the Dockerfile and below, relative to its folder."""
        folder = self.dockerfile.parent
        for path in folder.rglob("*"):
            relative = path.relative_to(folder)
            if path.is_file() and not any(part in NEVER for part in relative.parts):
                yield relative.as_posix()


def inputs(image: Image, root: Path, environment: Mapping[str, str] | None = None) -> Inputs:
    """What the image of a lane is made of. `root` is the folder of the matrix."""
    environment = os.environ if environment is None else environment
    dockerfile = root / image.dockerfile
    if not dockerfile.is_file():
        raise MatrixError(f"no Dockerfile {image.dockerfile}; the matrix names it relative to itself")
    host = {name: environment[name] for name in (*INDEX, *PROXIES) if environment.get(name)}
    return Inputs(dockerfile, dict(image.args), image.target, certificates(environment), project_of(root), host)


def project_of(root: Path) -> str:
    """Tells one project's folder from another's."""
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]


def certificates(environment: Mapping[str, str]) -> bytes | None:
    """The host's own authorities: what GREENLANE_CA_CERTIFICATES names; empty means none; unset, what pip trusts."""
    named = environment.get(CERTIFICATES)
    if named == "":
        return None
    path = named or next((environment[name] for name in TRUSTED_BY if environment.get(name)), _of_pip(environment))
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        if named is None:
            return None
        raise EnvironmentMissing(f"{CERTIFICATES}={path}: {error.strerror}; name a PEM file") from error


def _of_pip(environment: Mapping[str, str]) -> str | None:
    """`cert` of the host's pip configuration; a later file wins, as with pip."""
    home = Path(environment.get("HOME") or "/nonexistent")
    known = configparser.RawConfigParser()
    with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):
        known.read([PIP_CONFIGURATION, home / ".pip/pip.conf", home / ".config/pip/pip.conf"])
    return known.get("global", "cert", fallback=None)


def _is_a_dockerfile(name: str) -> bool:
    """Another image's Dockerfile beside this one."""
    return "/" not in name and (name.endswith(".Dockerfile") or name.startswith("Dockerfile"))

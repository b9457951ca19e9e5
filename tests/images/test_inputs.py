"""What an image is made of, and when it is made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.images import build, seed
from greenlane.images.build import Cli, arguments
from greenlane.images.inputs import CERTIFICATES, certificates, inputs
from greenlane.matrix.model import Image

ROOT = Path(__file__).parents[2]
IMAGE = Image("docker/rocm.Dockerfile", {"CLANG_VERSION": "21"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "rocm.Dockerfile").write_text("FROM debian:forky\nCOPY setup.sh /\n")
    (folder / "cuda.Dockerfile").write_text("FROM debian:forky\n")
    (folder / "setup.sh").write_text("true\n")
    return tmp_path


def digest(project: Path, image: Image = IMAGE, **environment: str) -> str:
    return inputs(image, project, environment).digest()


def test_the_digest_stays_while_nothing_changes(project: Path) -> None:
    assert digest(project) == digest(project)


@pytest.mark.parametrize("what", ["dockerfile", "beside", "args", "target", "certificates"])
def test_the_digest_changes_with_everything_that_goes_in(project: Path, what: str) -> None:
    before, image, environment = digest(project), IMAGE, {}
    if what == "dockerfile":
        (project / "docker/rocm.Dockerfile").write_text("FROM debian:forky\n")
    elif what == "beside":
        (project / "docker/setup.sh").write_text("false\n")
    elif what == "args":
        image = replace(IMAGE, args={"CLANG_VERSION": "22"})
    elif what == "target":
        image = replace(IMAGE, target="clang")
    else:
        (project / "ca.pem").write_text("PEM")
        environment = {CERTIFICATES: str(project / "ca.pem")}
    assert digest(project, image, **environment) != before


def test_another_images_dockerfile_and_a_proxy_change_nothing(project: Path) -> None:
    before = digest(project)
    (project / "docker/cuda.Dockerfile").write_text("FROM scratch\n")
    assert digest(project, https_proxy="http://user:word@proxy:1") == before


def test_a_proxys_password_is_in_no_command_line(project: Path) -> None:
    made_of = inputs(IMAGE, project, {"https_proxy": "http://user:word@proxy:1"})
    command = arguments(Cli("docker", buildkit=True), "unix:///x.sock", made_of)
    assert "https_proxy" in command
    assert not any("word" in part for part in command)


def test_the_hosts_authorities_come_in_by_the_option(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenlane.images.inputs.PIP_CONFIGURATION", str(project / "pip.conf"))
    (project / "own.pem").write_text("own")
    (project / "pip.pem").write_text("pip")
    own, pip = str(project / "own.pem"), str(project / "pip.pem")
    assert certificates({}) is None
    assert certificates({"PIP_CERT": pip}) == b"pip"
    assert certificates({"PIP_CERT": pip, CERTIFICATES: own}) == b"own"
    assert certificates({"PIP_CERT": pip, CERTIFICATES: ""}) is None
    with pytest.raises(EnvironmentMissing, match="name a PEM file"):
        certificates({CERTIFICATES: "/nonexistent.pem"})
    (project / "pip.conf").write_text(f"[global]\ncert = {pip}\n")
    assert certificates({}) == b"pip"
    assert certificates({"SSL_CERT_FILE": own}) == b"own"


def test_certificates_lie_where_the_dockerfiles_copy_them_from(project: Path) -> None:
    (project / "own.pem").write_text("own")
    context = dict(inputs(IMAGE, project, {CERTIFICATES: str(project / "own.pem")}).context())
    assert context["ca/host.crt"] == b"own"
    assert "cuda.Dockerfile" not in context


def test_a_missing_dockerfile_is_a_mistake_of_the_matrix(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"no Dockerfile docker/rocm\.Dockerfile"):
        inputs(IMAGE, tmp_path, {})


@pytest.mark.parametrize("name", ["cpu", "cuda", "rocm"])
def test_the_real_dockerfiles_start_from_one_base_that_an_argument_swaps(name: str) -> None:
    dockerfile = ROOT / f"dockerfiles/{name}.Dockerfile"
    assert seed.bases(dockerfile, {}) == ["debian:forky"]
    assert seed.bases(dockerfile, {"BASE": "vendor/image:1"}) == ["vendor/image:1"]


def test_no_file_of_an_image_names_a_host() -> None:
    for file in (ROOT / "dockerfiles").rglob("*"):
        if file.is_file():
            assert "://" not in file.read_text(), f"{file} names a host; mirrors come from the base and the host"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "deb [signed-by=/x.gpg] http://mirror.invalid/debian forky main\n"),
        ("debian.sources", "Types: deb\n# a comment\nURIs: http://mirror.invalid/debian\nSuites: forky\n"),
    ],
)
def test_the_archive_comes_from_the_hosts_own_apt(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "a-vendor.list").write_text("deb http://vendor.invalid/apt stable main\n")
    (tmp_path / name).write_text(text)
    assert seed.archive([tmp_path]) == "http://mirror.invalid/debian"


def test_a_host_without_a_debian_archive_cannot_seed(tmp_path: Path) -> None:
    (tmp_path / "vendor.list").write_text("deb http://vendor.invalid/apt stable main\n")
    with pytest.raises(EnvironmentMissing, match="names no Debian archive"):
        seed.archive([tmp_path])


def test_only_a_distribution_can_be_seeded() -> None:
    with pytest.raises(MatrixError, match="pull this one"):
        seed.seed("vendor/cuda:13", "docker", "unix:///x", print)


def test_a_docker_command_that_builds_by_buildkit_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        ("/a/docker", "--version"): "Docker version 28.2.0, build x",
        ("/a/docker", "buildx", "version"): None,
        ("/b/docker", "--version"): "Docker version 20.10.24, build x",
        ("/c/podman", "--version"): "podman version 4.3.1",
    }
    monkeypatch.setattr(build, "_on_path", lambda: ["/a/docker", "/b/docker", "/c/podman"])
    monkeypatch.setattr(build, "_ask", lambda *command: said[command])
    build.command_line.cache_clear()
    assert build.command_line() == Cli("/b/docker", buildkit=True)
    build.command_line.cache_clear()


def test_podman_is_told_which_service_builds(project: Path) -> None:
    made_of = inputs(IMAGE, project, {})
    command = arguments(Cli("podman", buildkit=False, podman=True), "unix:///x.sock", made_of)
    assert command[:5] == ["podman", "--remote", "--url", "unix:///x.sock", "build"]
    assert "--progress" not in command

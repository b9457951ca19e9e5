"""Images made by a real daemon."""

from __future__ import annotations

from pathlib import Path

from greenlane.executors.daemon import Daemon
from tests.docker.conftest import box
from tests.lanes.conftest import Project


def test_an_image_is_built_once_listed_and_pruned_when_no_lane_has_it(
    boxed: Project, daemon: Daemon, tmp_path: Path
) -> None:
    (boxed.root / "docker/box.Dockerfile").write_text(f"FROM debian:forky\nRUN echo first {tmp_path} > /mark\n")
    box(boxed)
    first = boxed.greenlane("images", "build").stdout.splitlines()[-1].split()
    again = boxed.greenlane("images", "build").stdout.splitlines()[-1].split()
    assert first[2:] == ["built", "(cpu)"] and again[2:] == ["unchanged", "(cpu)"] and first[:2] == again[:2]
    (boxed.root / "docker/box.Dockerfile").write_text(f"FROM debian:forky\nRUN echo second {tmp_path} > /mark\n")
    second = boxed.greenlane("images", "build").stdout.splitlines()[-1].split()
    assert second[0] != first[0] and second[2] == "built"
    listed = boxed.greenlane("images", "ls").stdout
    assert second[1] in listed and first[1] in listed and "(no lane: greenlane images prune)" in listed
    others = {image["Id"] for image in daemon.client.images() if "greenlane.project" not in (image["Labels"] or {})}
    assert first[0] in boxed.greenlane("images", "prune").stdout
    left = {image["Id"]: image["RepoTags"] for image in daemon.client.images()}
    assert [second[0]] in left.values() and [first[0]] not in left.values()
    assert others <= set(left), "what others made stays"


def test_a_dockerfile_that_doesnt_build_is_red_with_the_end_of_its_log(boxed: Project) -> None:
    (boxed.root / "docker/box.Dockerfile").write_text("FROM debian:forky\nRUN echo about to fail && exit 7\n")
    box(boxed)
    done = boxed.greenlane("images", "build")
    assert done.returncode == 1
    assert "about to fail" in done.stderr and "Traceback" not in done.stderr
    run = boxed.greenlane("run", "cpu")
    assert run.returncode == 1
    assert boxed.stages()["image"]["outcome"] == "fail" and boxed.stages()["test"]["outcome"] == "blocked"


def test_an_image_that_the_network_fails_is_no_red(boxed: Project) -> None:
    said = "Err:1 archive forky InRelease  Temporary failure resolving 'archive'"
    (boxed.root / "docker/box.Dockerfile").write_text(f'FROM debian:forky\nRUN echo "{said}" && exit 100\n')
    box(boxed)
    assert boxed.greenlane("run", "cpu").returncode == 3
    image = boxed.stages()["image"]
    assert image["first_error"]["rule"] == "infra"  # type: ignore[index]
    assert "Temporary failure resolving" in str(image["reason"])


def test_a_base_that_is_here_is_not_seeded_again(boxed: Project) -> None:
    assert boxed.greenlane("images", "seed").stdout == "debian:forky is here already\n"


def test_the_hosts_certificates_are_trusted_in_the_image(boxed: Project) -> None:
    (boxed.root / "docker/box.Dockerfile").write_text("FROM debian:forky\nCOPY ca/ /ca/\nRUN cat /ca/host.crt\n")
    (boxed.root / "own.pem").write_text("OWN AUTHORITY\n")
    box(boxed, "cat /ca/host.crt")
    done = boxed.greenlane("run", "cpu", GREENLANE_CA_CERTIFICATES=str(boxed.root / "own.pem"))
    assert done.returncode == 0, done.stdout + done.stderr

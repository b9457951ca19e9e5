"""What a Dockerfile takes from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.images.copied import copied
from greenlane.images.inputs import inputs
from greenlane.matrix.model import Image

FILES = ["a.sh", "b.sh", "ca/one.crt", "ca/deep/two.crt", "cat", ".dockerignore"]


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("COPY a.sh /tmp/", ["a.sh"]),
        ("copy ./a.sh /b.sh /tmp/", ["a.sh", "b.sh"]),
        ("COPY ca/ /ca/", ["ca/one.crt", "ca/deep/two.crt"]),
        ("COPY ca /ca/", ["ca/one.crt", "ca/deep/two.crt"]),
        ("COPY ca/deep/two.crt /x", ["ca/deep/two.crt"]),
        ("COPY *.sh /tmp/", ["a.sh", "b.sh"]),
        ("COPY c* /tmp/", ["ca/one.crt", "ca/deep/two.crt", "cat"]),
        ('COPY ["a.sh", "b.sh", "/tmp/"]', ["a.sh", "b.sh"]),
        ("COPY --chown=1:1 --chmod=644 a.sh /tmp/", ["a.sh"]),
        ("COPY --from=build a.sh /tmp/", []),
        ("ADD https://example.org/a.sh /tmp/", []),
        ("COPY a.sh \\\n  # not this one\n  b.sh \\\n  /tmp/", ["a.sh", "b.sh"]),
        ("RUN cp a.sh b.sh", []),
        ("# COPY a.sh /tmp", []),
        ("RUN --mount=type=cache,target=/x cat", []),
        ("RUN --mount=type=bind,from=other,target=/x cat", []),
        ("COPY . /all", FILES[:-1]),
    ],
)
def test_a_dockerfile_takes_what_it_copies(line: str, taken: list[str]) -> None:
    assert copied(f"FROM x\n{line}\n", FILES) == [*taken, ".dockerignore"]


@pytest.mark.parametrize(
    "line",
    [
        "COPY $NAME /tmp/",
        "COPY <<EOF /x",
        "RUN --mount=type=bind,target=/x cat",
        "RUN --mount=target=/x cat",
        'COPY "a',
    ],
)
def test_what_only_the_build_can_know_takes_the_whole_folder(line: str) -> None:
    assert copied(f"FROM x\n{line}\n", FILES) is None


def test_an_edit_to_a_file_that_an_image_does_not_copy_makes_no_new_image(tmp_path: Path) -> None:
    (tmp_path / "cpu.Dockerfile").write_text("FROM debian:forky\nCOPY cpu.sh /\n")
    (tmp_path / "cpu.sh").write_text("true\n")
    (tmp_path / "gpu.sh").write_text("true\n")
    before = inputs(Image("cpu.Dockerfile", {}), tmp_path, {}).tag
    (tmp_path / "gpu.sh").write_text("false\n")
    assert inputs(Image("cpu.Dockerfile", {}), tmp_path, {}).tag == before
    (tmp_path / "cpu.sh").write_text("false\n")
    assert inputs(Image("cpu.Dockerfile", {}), tmp_path, {}).tag != before

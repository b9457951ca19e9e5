"""Which images count as a project's own, and which as built by anybody."""

from __future__ import annotations

from typing import Any

from greenlane.images.build import LABEL, PROJECT
from greenlane.images.store import stored


class Client:
    """A daemon with two images, from two projects."""

    def __init__(self) -> None:
        self.here = [self._image("one", "a", 1), self._image("two", "b", 2)]

    def _image(self, project: str, inputs: str, created: int) -> dict[str, Any]:
        return {"Id": f"sha256:{inputs}", "Size": 1, "Created": created, "Labels": {LABEL: inputs, PROJECT: project}}

    def images(self, filters: dict[str, list[str]]) -> list[dict[str, Any]]:
        return [image for image in self.here if all(self._has(image["Labels"], label) for label in filters["label"])]

    def _has(self, labels: dict[str, str], label: str) -> bool:
        name, _, value = label.partition("=")
        return name in labels and (not value or labels[name] == value)


def test_a_projects_images_are_its_own() -> None:
    assert [image.inputs for image in stored(Client(), "one")] == ["a"]


def test_an_image_of_equal_inputs_counts_whoever_built_it() -> None:
    assert [image.inputs for image in stored(Client())] == ["b", "a"]

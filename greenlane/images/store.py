"""The images that greenlane made: listing them, and removing those that no lane uses any more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from greenlane.images.build import LABEL, PROJECT


@dataclass(frozen=True, slots=True)
class Stored:
    id: str
    tags: tuple[str, ...]
    bytes: int
    created: int  # seconds since 1970
    inputs: str  # digest of what it was made of


def stored(client: Any, project: str | None = None) -> list[Stored]:
    """The images that were made for a project, or for any, newest first."""
    labels = [LABEL] if project is None else [LABEL, f"{PROJECT}={project}"]
    found = [
        Stored(
            id=image["Id"].removeprefix("sha256:"),
            tags=tuple(tag for tag in image.get("RepoTags") or () if not tag.startswith("<none>")),
            bytes=image["Size"],
            created=image["Created"],
            inputs=image["Labels"][LABEL],
        )
        for image in client.images(filters={"label": labels})
    ]
    return sorted(found, key=lambda image: -image.created)


def prune(client: Any, project: str, used: Collection[str]) -> list[Stored]:
    """Removes the images whose inputs no lane of the project has, and returns them; one in use stays."""
    import docker

    removed = []
    for image in stored(client, project):
        if image.inputs in used:
            continue
        try:
            client.remove_image(image.tags[0] if len(image.tags) == 1 else image.id, force=len(image.tags) != 1)
            removed.append(image)
        except docker.errors.APIError:
            continue
    return removed

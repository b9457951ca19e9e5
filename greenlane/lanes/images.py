"""`greenlane images`: build, seed, list and prune what lanes run in."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.executors import daemon as daemons
from greenlane.images import build, seed, store
from greenlane.images.inputs import Inputs, inputs, project_of
from greenlane.lanes import plan
from greenlane.lanes.folders import StateFolder
from greenlane.matrix.model import Lane


def command(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import load

    matrix = load(arguments.matrix)
    root = arguments.matrix.resolve().parent
    lanes = plan.lanes_named(matrix.lanes, arguments.lanes) if arguments.lanes else list(matrix.lanes)
    wanted = images_of(lanes, root)
    if arguments.lanes and not wanted:
        raise MatrixError(f"{', '.join(arguments.lanes)}: the matrix gives no dockerfile")
    state = StateFolder(root / ".greenlane")
    state.prepare()
    verb = {"build": _build, "seed": _seed, "ls": _list, "prune": _prune}[arguments.action]
    return verb(wanted, state.root)


def images_of(lanes: Iterable[Lane], root: Path) -> dict[str, tuple[Inputs, list[str]]]:
    """Tag -> what the image is made of, and the lanes that run in it."""
    found: dict[str, tuple[Inputs, list[str]]] = {}
    for lane in lanes:
        if lane.image is not None:
            made_of = inputs(lane.image, root)
            found.setdefault(made_of.tag, (made_of, []))[1].append(lane.id)
    return found


def _build(wanted: dict[str, tuple[Inputs, list[str]]], state: Path) -> int:
    daemon = daemons.required()
    for tag, (made_of, lanes) in wanted.items():
        image, built = build.ensure(daemon.client, daemon.base_url, made_of, state, print)
        print(f"{tag} {image[:12]} {'built' if built else 'unchanged'} ({', '.join(lanes)})")
    return 0


def _seed(wanted: dict[str, tuple[Inputs, list[str]]], state: Path) -> int:
    """Makes each base image that the daemon lacks."""
    import docker

    daemon = daemons.required()
    names = {name for made_of, _ in wanted.values() for name in seed.bases(made_of.dockerfile, dict(made_of.args))}
    for name in sorted(names):
        try:
            daemon.client.inspect_image(name)
            print(f"{name} is here already")
        except docker.errors.ImageNotFound:
            seed.seed(name, build.command_line().path, daemon.base_url, print)
            print(f"{name} seeded")
    return 0


def _list(wanted: dict[str, tuple[Inputs, list[str]]], state: Path) -> int:
    daemon, project = daemons.required(), project_of(state.parent)
    anywhere = {image.inputs: image for image in store.stored(daemon.client)}  # equal inputs: whoever built it
    own = {image.inputs: image for image in store.stored(daemon.client, project)}
    rows = [("image", "id", "size", "built", "lanes")]
    for tag, (made_of, lanes) in wanted.items():
        own.pop(made_of.digest(), None)
        rows.append((tag, *_facts(anywhere.get(made_of.digest())), " ".join(lanes)))
    for image in own.values():
        rows.append((" ".join(image.tags) or "<no name>", *_facts(image), "(no lane: greenlane images prune)"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + [row[4]]))
    return 0


def _prune(wanted: dict[str, tuple[Inputs, list[str]]], state: Path) -> int:
    daemon, project = daemons.required(), project_of(state.parent)
    for image in store.prune(daemon.client, project, {made_of.digest() for made_of, _ in wanted.values()}):
        print(f"{' '.join(image.tags) or image.id[:12]} removed, {image.bytes / 1e9:.2f} GB")
    return 0


def _facts(image: store.Stored | None) -> tuple[str, str, str]:
    if image is None:
        return "not built", "", ""
    built = datetime.fromtimestamp(image.created).strftime("%Y-%m-%d %H:%M")
    return image.id[:12], f"{image.bytes / 1e9:.2f} GB", built

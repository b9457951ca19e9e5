"""The digest of the model that a lane's gates measure with: `model:` of the matrix names its files inside the lane."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Command, Folders, Stream
from greenlane.executors.docker import INSIDE
from greenlane.lanes import places, plan
from greenlane.lanes.context import Context
from greenlane.lanes.placeholders import Placeholders
from greenlane.lanes.session import Session
from greenlane.ledger.store import write_durably
from greenlane.matrix.model import Lane

HASHED = "models.json"  # in the state folder: what was hashed, so that weights of gigabytes are read once


def digest(context: Context) -> str | None:
    """Hex SHA-256 of the lane's model; None for a lane that names none. A missing file can't be measured with."""
    lane = context.lane
    if not lane.model:
        return None
    fill = context.placeholders().fill
    wanted = [fill(pattern) for pattern in lane.model]
    if _on_host(context.executor.name, wanted):
        found = _of_files(_seen_from_host(wanted, context.host), context.folder.state)
    else:
        found = _in_image(context, wanted)
    if found is None:
        raise EnvironmentMissing(f"lane {lane.id}: no file matches its model {', '.join(wanted)}")
    return found


def known(session: Session, lane: Lane, executor: str, image: str | None) -> str | None:
    """The digest without starting anything; None where the lane has no model or it was never hashed."""
    if not lane.model or not set(plan.GATES) & set(plan.stages_of(lane, executor, session.options.until)):
        return None
    host = places.host_folders(session, lane, session.state.lane(session.name_of(lane)))
    fill = Placeholders(lane, INSIDE if executor == places.DOCKER else host, "python3", 1).fill
    wanted = [fill(pattern) for pattern in lane.model]
    if _on_host(executor, wanted):
        return _of_files(_seen_from_host(wanted, host), session.state.root)
    return _remembered(session.state.root).get(_key(image, wanted))


def _on_host(executor: str, wanted: Sequence[str]) -> bool:
    """Whether greenlane sees the files itself: all on the host, and those of the source tree in a container."""
    return executor == places.HOST or all(pattern.startswith(f"{INSIDE.source}/") for pattern in wanted)


def _seen_from_host(wanted: Sequence[str], host: Folders) -> list[str]:
    inside = f"{INSIDE.source}/"
    return [f"{host.source}/{one.removeprefix(inside)}" if one.startswith(inside) else one for one in wanted]


def _of_files(wanted: Sequence[str], state: Path) -> str | None:
    """A single file's own SHA-256; of several, that over theirs in order."""
    files = sorted({name.resolve() for pattern in wanted for name in Path("/").glob(pattern[1:])})
    return _together([_of_file(file, state) for file in files if file.is_file()])


def _of_file(file: Path, state: Path) -> str:
    status = file.stat()
    key = f"{file} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
    if (remembered := _remembered(state).get(key)) is not None:
        return remembered
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    _remember(state, key, found)
    return found


def _in_image(context: Context, wanted: Sequence[str]) -> str | None:
    """Hashed inside the lane, once per image: nothing but the image can hold the files there."""
    key = _key(context.image, wanted)
    if (remembered := _remembered(context.folder.state).get(key)) is not None:
        return remembered
    lines: list[str] = []
    script = f'for file in {" ".join(map(_escaped, wanted))}; do test ! -f "$file" || sha256sum <"$file"; done'
    command = Command(script, context.executor.inside.build)
    ended = context.executor.run(command, lambda stream, line: lines.append(line) if stream is Stream.OUT else None)
    if ended.lost is not None:
        raise EnvironmentMissing(f"lane {context.lane.id}: {ended.lost}")
    found = _together([line.split()[0] for line in lines if line.strip()])
    if found is not None:
        _remember(context.folder.state, key, found)
    return found


def _escaped(pattern: str) -> str:
    """For the shell, with the glob's own characters left alive."""
    return re.sub(r"([^\w/.*?\[\]-])", r"\\\1", pattern)


def _together(found: Sequence[str]) -> str | None:
    if len(found) < 2:
        return found[0] if found else None
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _key(image: str | None, wanted: Sequence[str]) -> str:
    return json.dumps([image, *wanted])


def _remembered(state: Path) -> dict[str, str]:
    try:
        found = json.loads((state / HASHED).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(state: Path, key: str, found: str) -> None:
    write_durably(state / HASHED, json.dumps({**_remembered(state), key: found}).encode())

"""GitHub's own OpenAPI description, cut to the operations that greenlane uses and made strict, served by Prism."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parents[2] / ".cache" / "prism"
PRISM, OCTOKIT = "@stoplight/prism-cli@5.14.2", "@octokit/openapi@23.0.2"
REPO = "/repos/{owner}/{repo}"
OPERATIONS = {
    "/user": ("get",),
    f"{REPO}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{REPO}/issues/comments/{{comment_id}}": ("patch",),
    f"{REPO}/pulls": ("get",),
    f"{REPO}/pulls/{{pull_number}}": ("get",),
    f"{REPO}/actions/runs/{{run_id}}": ("get",),
    f"{REPO}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{REPO}/check-runs": ("post",),
    f"{REPO}/check-runs/{{check_run_id}}": ("patch",),
    f"{REPO}/statuses/{{sha}}": ("post",),
}
JSON_TYPES = ("application/vnd.github+json", "application/vnd.github.v3+json")


class NotToBeHad(Exception):
    """Why there is no Prism here."""


def installed() -> tuple[Path, Path]:
    """(program, description), by npm into a cache. Raises NotToBeHad with the reason."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotToBeHad("npm is not installed")
    program, description = CACHE / "node_modules" / ".bin" / "prism", CACHE / "api.github.com.json"
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "package.json").write_text('{"private": true}\n')
    try:
        if not program.exists():
            quiet = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            subprocess.run([npm, "install", *quiet, PRISM], cwd=CACHE, check=True, timeout=300, capture_output=True)
        if not description.exists():
            _only_the_description(npm, description)
    except (subprocess.SubprocessError, OSError, KeyError) as error:
        raise NotToBeHad(f"npm can't bring {PRISM} and {OCTOKIT}: {error}") from error
    return program, description


def _only_the_description(npm: str, target: Path) -> None:
    """One file of a package that unpacks to 385 MB."""
    packed = subprocess.run(
        [npm, "pack", "--silent", OCTOKIT], cwd=CACHE, check=True, timeout=300, capture_output=True, text=True
    )
    archive = CACHE / packed.stdout.split()[-1]
    with tarfile.open(archive) as opened:
        member = opened.extractfile("package/generated/api.github.com.json")
        assert member is not None
        part = target.with_suffix(".part")
        part.write_bytes(member.read())
    part.rename(target)
    archive.unlink()


def cut(description: dict[str, Any]) -> dict[str, Any]:
    """The used operations with everything that they refer to; unknown fields of requests are refused."""
    paths = {path: _used(description, path, verbs) for path, verbs in OPERATIONS.items()}
    components: dict[str, dict[str, Any]] = {}
    pending = list(_references(paths))
    while pending:
        kind, name = pending.pop()
        if name not in components.setdefault(kind, {}):
            components[kind][name] = description["components"][kind][name]
            pending += _references(components[kind][name])
    for example in components["examples"].values():
        _mended(example["value"])
    return {"openapi": description["openapi"], "info": description["info"], "paths": paths, "components": components}


def _used(description: dict[str, Any], path: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    found = description["paths"][path]
    shared = {"parameters": found["parameters"]} if "parameters" in found else {}
    return {verb: _strict(found[verb]) for verb in verbs} | shared


def _strict(operation: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(operation))
    for media in made.get("requestBody", {}).get("content", {}).values():
        _close(media["schema"])
    for response in made["responses"].values():
        response.get("headers", {}).pop("Link", None)  # it would send a reader to pages that Prism does not have
        content = response.get("content", {})
        if "application/json" in content:
            content |= dict.fromkeys(JSON_TYPES, content["application/json"])
    return made


def _close(schema: dict[str, Any]) -> None:
    """No further fields, in the object and in those inside of it; alternatives name only some, so they stay open."""
    if "properties" in schema:
        schema["additionalProperties"] = False
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        _close(inner)


def _mended(example: Any) -> None:
    """GitHub's own example of a pull request lacks what its schema requires of a team."""
    for entry in example if isinstance(example, list) else [example]:
        if isinstance(entry, dict) and "requested_teams" in entry:
            entry["requested_teams"] = []


def _references(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            kind, name = value["$ref"].removeprefix("#/components/").split("/", 1)
            yield kind, name
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a Prism that answers from the cut description and refuses what does not fit it."""
    program, description = installed()
    file = folder / "github.json"
    file.write_text(json.dumps(cut(json.loads(description.read_text()))))
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    command = [str(program), "mock", "--errors", "-h", "127.0.0.1", "-p", str(port), str(file)]
    with (folder / "prism.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"NO_COLOR": "1"})
        try:
            _answering(process, port, folder / "prism.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


def _answering(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise NotToBeHad(f"prism ended at once: {log.read_text()[-300:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise NotToBeHad("prism did not begin to answer within a minute")

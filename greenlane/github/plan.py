"""`greenlane ci plan`: which lanes a run takes, which it withholds and why, and what they are compared with."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlane.errors import MatrixError
from greenlane.github import event as events
from greenlane.github.comment import say, summarize
from greenlane.matrix import export
from greenlane.matrix import rows as lane_rows
from greenlane.matrix.rows import NIGHTLY, Row
from greenlane.record.git import commit_of, git_text
from greenlane.report.markdown import code, plain, table, text

LABEL = "greenlane-hardware"  # of a pull request that a maintainer lets onto the team's own machines
HOSTED = ("ubuntu-", "windows-", "macos-")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does."""

    chosen: tuple[Row, ...]
    withheld: tuple[tuple[str, str], ...]  # (lane, why)


def command(arguments: argparse.Namespace) -> int:
    event, name = events.read(os.environ), os.environ.get("GITHUB_EVENT_NAME", "")
    plan = make(select(lane_rows.load(arguments.matrix), os.environ.get("GREENLANE_SELECT", "")), name, event)
    groups = export.github(plan.chosen)["groups"]
    jobs = int(os.environ.get("GREENLANE_GROUPS", "1"))
    if len(groups) > jobs:
        raise MatrixError(
            f"{len(plan.chosen)} lanes need {len(groups)} jobs, and the workflow has {jobs}: render it anew"
        )
    folder = arguments.matrix.resolve().parent
    outputs = {f"lanes_{number}": json.dumps(group) for number, group in enumerate(groups, 1)}
    write_outputs(outputs | {"head": git_text(folder, "rev-parse", "HEAD"), "base": base_of(folder, name, event)})
    for lane, why in plan.withheld:
        say(f"{lane}: withheld: {why}")
    summarize(told(plan))
    return 0


def select(rows: Sequence[Row], expression: str) -> Sequence[Row]:
    if not expression.strip():
        return rows
    from greenlane.matrix.select import Selection

    return list(Selection(expression).select(rows))


def make(rows: Iterable[Row], name: str, event: Mapping[str, Any]) -> Plan:
    """A change takes every lane but the nightly ones; a fork's change takes none on the team's own machines."""
    hardware, nightly = may_use_hardware(name, event), name in {"schedule", "workflow_dispatch"}
    chosen, withheld = [], []
    for row in rows:
        if NIGHTLY in row["tags"] and not nightly:
            withheld.append((row["id"], "it runs nightly"))
        elif not is_hosted(row["runs_on"]) and not hardware:
            why = f"it needs a machine of the team, and this is a fork's change: a maintainer labels it {LABEL!r}"
            withheld.append((row["id"], why))
        else:
            chosen.append(row)
    return Plan(tuple(chosen), tuple(withheld))


def may_use_hardware(name: str, event: Mapping[str, Any]) -> bool:
    """A fork's code gets there by the very event of being labelled: what is pushed later has not been looked at."""
    if not events.is_of_fork({"GITHUB_EVENT_NAME": name}, event):
        return True
    label = event.get("label")
    return event.get("action") == "labeled" and isinstance(label, Mapping) and label.get("name") == LABEL


def is_hosted(labels: Sequence[str]) -> bool:
    """One label of GitHub's own pattern, or none, which the workflow takes for one."""
    return not labels or (len(labels) == 1 and labels[0].startswith(HOSTED))


def base_of(folder: Path, name: str, event: Mapping[str, Any]) -> str:
    """The commit that a change is compared with; nothing for a push, which is no change any more."""
    found = ""
    if name == "pull_request":
        found = _at(event, "pull_request", "base", "sha")
    elif name == "merge_group":
        found = _at(event, "merge_group", "base_sha")
    elif name == "workflow_dispatch" and os.environ.get("GREENLANE_PULL"):
        found = f"refs/remotes/origin/{_at(event, 'repository', 'default_branch')}"
    commit = commit_of(folder, found) if found else ""
    if commit is None:
        raise MatrixError(f"the base {plain(found, 100)} is not in this clone: check out with `fetch-depth: 0`")
    return commit


def _at(event: Mapping[str, Any], *path: str) -> str:
    value: Any = event
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def write_outputs(outputs: Mapping[str, str]) -> None:
    """Into the step's outputs in a workflow, else to standard output. Values have one line, so none can add another."""
    lines = [f"{key}={value}" for key, value in outputs.items()]
    assert not any("\n" in line or "\r" in line for line in lines), "JSON and commit ids have one line"
    path = os.environ.get("GITHUB_OUTPUT")
    if not path:
        print("\n".join(lines))
        return
    with Path(path).open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def told(plan: Plan) -> str:
    rows = [(code(lane), text(why)) for lane, why in plan.withheld]
    counted = f"{len(plan.chosen)} lanes run, {len(rows)} are withheld.\n"
    return counted + (f"\n{table(('withheld', 'because'), rows)}\n" if rows else "")

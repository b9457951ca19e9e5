"""The public faults of cases.jsonl as projects on disk: files, a matrix made of their lanes, expectations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from greenlane.checks.source import vendors
from greenlane.matrix.model import Lane, Matrix


@dataclass(frozen=True)
class Case:
    id: str
    scope: str
    lanes: Mapping[str, Any]
    constraints: tuple[str, ...]
    files: Mapping[str, str]
    fixed: Mapping[str, str]
    expect: tuple[Mapping[str, Any], ...]

    def write(self, root: Path, fixed: bool = False) -> None:
        for path, text in {**self.files, **(self.fixed if fixed else {})}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)

    def matrix(self) -> Matrix:
        return Matrix("matrix.yaml", tuple(_lane(name, entry) for name, entry in self.lanes.items()), self.constraints)


def load() -> list[Case]:
    lines = Path(__file__).with_name("cases.jsonl").read_text().splitlines()
    return [_case(json.loads(line)) for line in lines]


def _case(entry: Mapping[str, Any]) -> Case:
    constraints = tuple(entry.get("constraints") or ())
    return Case(
        entry["id"], entry["scope"], entry["lanes"], constraints, entry["files"], entry["fixed"], tuple(entry["expect"])
    )


def _lane(name: str, entry: Mapping[str, Any]) -> Lane:
    arch = entry.get("arch")
    return Lane(
        id=name,
        backend=name.partition("-")[0],
        arch=arch,
        archs=(arch,) if arch else (),
        wavefront=vendors.wavefront(arch),
        vendors=tuple(entry["vendors"]),
        macros=dict(entry["macros"]),
        compiler=entry.get("compiler"),
        sources=tuple(entry.get("sources") or ()),
    )


def matrix_yaml(case: Case) -> str:
    """The same lanes in the language of matrix.yaml: a backend each, so that every lane has the name it had."""
    backends = {}
    for name, entry in case.lanes.items():
        backends[name] = {"macros": dict(entry["macros"]), "vendors": list(entry["vendors"])} | {
            key: entry[key] for key in ("sources", "compiler") if entry.get(key)
        }
    document = {"version": 1, "backends": backends, "lanes": {"products": [{"backend": name} for name in backends]}}
    if case.constraints:
        document["constraints"] = list(case.constraints)
    return yaml.safe_dump(document, sort_keys=False)

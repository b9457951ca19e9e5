"""What the processes of one emulated run leave behind: launch counts and findings, merged into one file each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenlane.errors import EnvironmentMissing


def findings(folder: Path) -> list[dict[str, Any]]:
    """The sanitizer's findings of all processes."""
    return [finding for document in _documents(folder, "findings") for finding in document["findings"]]


def counts(folder: Path) -> dict[str, Any] | None:
    """The launch counts of all processes added up; None when nothing was launched."""
    documents = _documents(folder, "counts")
    if not documents:
        return None
    merged: dict[str, Any] = {**documents[0]}
    merged["kernel_launches"] = _sum(documents, "kernel_launches")
    merged["kernels"] = _kernels(documents)
    # Opcodes are counted once per kernel, not once per process.
    merged["opcodes"] = {
        name: max(document["opcodes"].get(name, 0) for document in documents)
        for name in sorted({name for document in documents for name in document["opcodes"]})
    }
    return merged


def add_coverage(path: Path, counted: Mapping[str, Any]) -> None:
    """Adds a run to what earlier runs of the same translator left in the file: which kernels, which opcodes."""
    known = _coverage(path)
    same = known if known.get("translator") == counted["translator"] and known.get("arch") == counted["arch"] else {}
    symbols = {kernel["symbol"] for kernel in counted["kernels"]} | set(same.get("kernels", ()))
    opcodes = {**same.get("opcodes", {})}
    for name, count in counted["opcodes"].items():
        opcodes[name] = max(count, opcodes.get(name, 0))
    added = {"kernels": sorted(symbols), "opcodes": dict(sorted(opcodes.items()))}
    write(path, {"schema": 1, "arch": counted["arch"], "translator": counted["translator"], **added})


def _coverage(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, document: Mapping[str, Any]) -> None:
    """The file appears whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(path)
    except OSError as error:
        raise EnvironmentMissing(f"emulate: can't write {path}: {error.strerror}") from None


def _documents(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}-*.json"))]


def _sum(documents: list[dict[str, Any]], key: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for document in documents:
        total.update(document[key])
    return dict(sorted(total.items()))


def _kernels(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for document in documents:
        for kernel in document["kernels"]:
            known = found.setdefault(kernel["symbol"], {"name": kernel["name"], "symbol": kernel["symbol"]})
            for number in ("launches", "workgroups", "waves", "instructions"):
                known[number] = known.get(number, 0) + kernel[number]
    return list(found.values())

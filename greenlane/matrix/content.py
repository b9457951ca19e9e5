"""The bytes of a matrix file, and a cache of what was made of them: keyed by content, kept outside the tree.

The tree may be a stranger's, so nothing in it is trusted as a cache; a broken or foreign entry is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from greenlane import __version__
from greenlane.errors import MatrixError

MAX_BYTES = 4 * 1024 * 1024
KEPT = 32  # entries


def read(path: Path) -> bytes:
    """The bytes of a matrix file."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MatrixError(f"{path}: no such file; `greenlane init` writes a first matrix") from None
    except OSError as error:
        raise MatrixError(f"{path}: can't be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise MatrixError(f"{path}:1:1: the file is larger than {MAX_BYTES} bytes; products say it shorter")
    return content


def recall(content: bytes) -> Any:
    """What `remember` kept for this content and this greenlane; None when there is nothing."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        return json.loads(_entry(content).read_bytes())
    return None


def remember(content: bytes, value: Any) -> None:
    """Keeps a value for this content. A cache that can't be written is no error."""
    with contextlib.suppress(OSError, RuntimeError):
        entry = _entry(content)
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=entry.parent, suffix=".part", delete=False) as stream:
            stream.write(json.dumps(value))  # `json.dump` would encode in Python
        Path(stream.name).replace(entry)
        _prune(entry.parent)


def _entry(content: bytes) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(content)
    digest.update(_code().encode())
    return Path(base) / "greenlane" / "matrix" / f"{digest.hexdigest()}.json"


def _code() -> str:
    """What stands for the code that expands a matrix: another greenlane makes its own entries."""
    with os.scandir(Path(__file__).parent) as entries:
        files = sorted(
            (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries if entry.is_file()
        )
    return json.dumps([__version__, files])


def _prune(folder: Path) -> None:
    entries = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for stale in entries[KEPT:]:
        stale.unlink(missing_ok=True)

"""What an earlier run found, by content: pickles in the user's cache folder, believed only when ours and whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent.parent
_MAGIC = b"greenlane-checks\n"


@lru_cache(maxsize=1)
def code_version() -> str:
    """Changes whenever the code of the checks changes."""
    whole = hashlib.blake2b(digest_size=8)
    for path in sorted([*_PACKAGE.rglob("*.py"), *(_PACKAGE.parent / "matrix").glob("*.py")]):
        state = path.stat()
        whole.update(f"{path.name}:{state.st_size}:{state.st_mtime_ns};".encode())
    return whole.hexdigest()


class Cache:
    """One folder; a damaged or foreign entry counts as absent, and a folder that can't be written is no error."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, name: str) -> Any:
        body = self._read(name)
        if body is None:
            return None
        try:
            return pickle.loads(body)
        except Exception:  # an entry of another version may refer to anything
            return None

    def load_bytes(self, name: str, digest: str) -> bytes | None:
        """Bytes of a known digest."""
        body = self._read(name)
        return body if body is not None and hashlib.blake2b(body, digest_size=16).hexdigest() == digest else None

    def _read(self, name: str) -> bytes | None:
        if self.folder is None:
            return None
        path = self.folder / name
        try:
            if path.stat().st_uid != os.getuid():
                return None
            data = path.read_bytes()
        except (OSError, AttributeError):
            return None
        head, digest, body = data[: len(_MAGIC)], data[len(_MAGIC) : len(_MAGIC) + 16], data[len(_MAGIC) + 16 :]
        if head != _MAGIC or hashlib.blake2b(body, digest_size=16).digest() != digest:
            return None
        return body

    def store(self, name: str, value: Any) -> None:
        if self.folder is not None:
            self.store_bytes(name, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))

    def store_bytes(self, name: str, body: bytes) -> None:
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(_MAGIC + hashlib.blake2b(body, digest_size=16).digest() + body)
                Path(temporary).replace(self.folder / name)
            except OSError:
                Path(temporary).unlink(missing_ok=True)

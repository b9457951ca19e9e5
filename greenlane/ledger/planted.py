"""Records that came with the source are nobody's: a change could bring a ledger in which its lanes are green."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.record.git import git

STATE = ".greenlane"


@lru_cache(maxsize=64)
def refuse_tracked(folder: Path) -> None:
    """Raises MatrixError where git tracks this folder, a file in it, or the state folder around it.

    A link or a submodule in its place is tracked as well. What lies in no repository was not brought by a change.
    """
    place = folder.parent if folder.parent.name == STATE else folder
    if not place.parent.is_dir():
        return
    try:
        listed = git(place.parent, "ls-files", "-z", "--", f":(literal){place.name}", check=False)
    except EnvironmentMissing:
        return  # without git there is no checkout
    if listed.returncode == 0 and listed.stdout:
        raise MatrixError(
            f"{place}: it is in git, so what it says of lanes may be a change's own word; "
            f"take it out: git rm -r --cached {place.name}"
        )

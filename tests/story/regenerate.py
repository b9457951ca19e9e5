"""Tells the story again and writes its comments as golden files: read every line of the diff before committing it.

python tests/story/regenerate.py
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.story.steps import STEPS, main_branch
from tests.story.telling import HERE, Telling, normalised


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        told = Telling(Path(scratch) / "engine")
        with contextlib.redirect_stdout(sys.stderr):
            main_branch(told)
            comments = {name: step(told) for name, step in STEPS.items()}
    for name, comment in comments.items():
        path = HERE / "golden" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(normalised(comment.text, told.commits))
        print(path)


if __name__ == "__main__":
    main()

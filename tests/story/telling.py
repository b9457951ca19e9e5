"""Tells the story of a port, commit by commit, in a scratch repository: real commits, lanes and command lines.

Two things stand for what the machine need not have: the stand-in toolkits of project/toolkit, against which the
host's g++ compiles the GPU lanes (a kernel runs as a loop), and the graphics card that a run is given by name.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from greenlane import cli
from greenlane.lanes import lease
from greenlane.lanes.lease import Card
from greenlane.ledger import Ledger
from greenlane.matrix.model import Stage
from greenlane.record.git import git, git_text
from greenlane.record.model import Record

HERE = Path(__file__).parent
PORT = HERE.parent / "fixtures" / "port"
CARDS = {
    "gfx1100": Card("amd", 0, "Radeon RX 7900 XTX", "gfx1100", "6.14"),
    "gfx1151": Card("amd", 0, "Radeon 8060S", "gfx1151", "6.14"),
    "sm_90": Card("nvidia", 0, "NVIDIA H100", "sm_90", "580.95"),
}
IDENTITY = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "somebody"), ("EMAIL", "somebody@localhost"))
}
ROCM_FILES = ("include/vt/rocm/combine_tokens.h", "src/rocm/combine_tokens.hip", "src/rocm/platform.cpp")
BY_VENDOR = re.compile(r"#if defined\(PORT_CUDA\)\n(.*?)#else\n.*?#endif\n", re.DOTALL)  # CUDA's part, then HIP's
OR_HIP = " || defined(PORT_HIP)"
LANES = (
    "cpu", "cuda-sm_80", "cuda-sm_90", "rocm-gfx1100", "rocm-gfx1151", "rocm-gfx1201", "tools", "tools-static",
)  # fmt: skip


@dataclass
class Telling:
    """The repository, and what has been told of it."""

    root: Path
    commits: dict[str, str] = field(default_factory=dict)

    @property
    def matrix(self) -> Path:
        return self.root / "matrix.yaml"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root / ".greenlane" / "ledger")

    def begin(self) -> None:
        """main before the port: the fixture without the ROCm mirror. Its ROCm platform is what the CPU's still is."""
        shutil.copytree(PORT, self.root, ignore=shutil.ignore_patterns("variants", "expected.json", "README.md"))
        for name in ROCM_FILES:
            (self.root / name).unlink()
        runner = self.root / "src" / "runner.cpp"
        runner.write_text(BY_VENDOR.sub(r"\1", runner.read_text()).replace(OR_HIP, ""))
        platform = (self.root / "src" / "cpu" / "platform.cpp").read_text()
        (self.root / "src" / "rocm" / "platform.cpp").write_text(
            platform.replace("CPU", "ROCm platform").replace("Cpu", "Rocm").replace('"cpu"', '"rocm"')
        )
        shutil.copytree(HERE / "project", self.root, dirs_exist_ok=True)
        (self.root / ".gitignore").write_text(".greenlane\n")
        git(self.root, "init", "-q", "-b", "main")

    def commit(self, name: str, message: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", message, env=IDENTITY)
        self.commits[name] = git_text(self.root, "rev-parse", "HEAD")
        return self.commits[name]

    def branch(self, name: str, start: str | None = None) -> None:
        git(self.root, "checkout", "-q", *(["-B", name, start] if start else [name]))

    def lay(self, *variants: str) -> None:
        """The fixture's port, and over it its faulty variants."""
        for name in (*ROCM_FILES, "src/runner.cpp"):
            _copy(PORT / name, self.root / name)
        for variant in variants:
            shutil.copytree(PORT / "variants" / variant, self.root, dirs_exist_ok=True)

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.root / name).read_text()
        assert before in text, f"{name} does not hold {before!r}"
        (self.root / name).write_text(text.replace(before, after))

    def run(self, *lanes: str, card: str | None = None, by: str = "ci", merge: bool = False) -> int:
        """`greenlane run` on the host, with this card in the machine, by CI or by the author at home."""
        options = ["--base", "main", *(["--merge"] if merge else [])] if by != "main" else []
        with _machine(CARDS[card] if card else None), _caller(self.root.parent, by):
            return cli.main(
                ["run", "--matrix", str(self.matrix), "--executor", "host", "--keep-going", *options, *(lanes or LANES)]
            )

    def review(self, body: str, *options: str) -> tuple[int, str]:
        """(exit code, comment) of `greenlane review`."""
        text = self.root.parent / "body.md"
        text.write_text(body)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            arguments = ["review", "--matrix", str(self.matrix), "--base", "main", "--pr-body", str(text)]
            code = cli.main([*arguments, "--format", "markdown", *options])
        return code, out.getvalue()

    def record(self, lane: str) -> Record:
        """The newest record of a lane."""
        return next(record for _, record in self.ledger.records(lane=lane))

    def fingerprint(self, lane: str, stage: Stage) -> str:
        found = next(result for result in self.record(lane).stages if result.stage is stage)
        assert found.first_error is not None, f"{lane}: {stage} is not red"
        return found.first_error.fingerprint

    def file_at(self, name: str, path: str) -> str:
        return git_text(self.root, "show", f"{self.commits[name]}:{path}")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


@contextlib.contextmanager
def _machine(card: Card | None) -> Iterator[None]:
    def cards(vendor: str) -> Sequence[Card]:
        return [card] if card is not None and card.vendor == vendor else []

    with mock.patch.object(lease, "cards", cards):
        yield


@contextlib.contextmanager
def _caller(scratch: Path, by: str) -> Iterator[None]:
    """Who runs: CI on main, CI on a pull request of this repository or of a fork, or a person at home."""
    ours, theirs = {"full_name": "org/engine"}, {"full_name": "stranger/engine"}
    pulls = {"ci": ours, "fork": theirs}
    event = {"pull_request": {"head": {"repo": pulls[by]}, "base": {"repo": ours}}} if by in pulls else {}
    path = scratch / "event.json"
    path.write_text(json.dumps(event))
    environment = {"GITHUB_ACTIONS": "false" if by == "author" else "true", "GITHUB_EVENT_PATH": str(path)}
    objects = scratch / "objects"
    objects.mkdir(exist_ok=True)
    with mock.patch.dict("os.environ", environment | {"PORT_OBJECTS": str(objects)}):
        yield


def normalised(comment: str, commits: dict[str, str]) -> str:
    """The comment without what differs from telling to telling: commits become their names, ids and times words."""
    for name, commit in commits.items():
        comment = re.sub(rf"\b{commit[:7]}[0-9a-f]*", f"<{name}>", comment)
    for before, after in (
        (r"(the tree `)[0-9a-f]{12}", r"\1<tree>"),
        (r"(greenlane reproduce )[0-9a-f]{12}", r"\1<record>"),
        (r"\b(x86_64|aarch64)\b", "<processor>"),
        (r"\b\d+ days?\b", "<n> days"),
    ):
        comment = re.sub(before, after, comment)
    return comment

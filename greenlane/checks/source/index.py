"""Facts of every slice that some lane reads, each parsed once; other processes help with a cold tree."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from greenlane.checks.source import parse
from greenlane.checks.source.decorations import Decorations
from greenlane.checks.source.facts import Facts
from greenlane.checks.source.files import SourceFile
from greenlane.checks.source.parse import IDENTIFIER
from greenlane.checks.source.slices import visible

_WORTH_A_PROCESS = 400_000  # bytes of unparsed code

SliceKey = tuple[str, str, tuple[tuple[int, ...], ...]]  # path, digest of the content, arms


class Job(NamedTuple):
    path: str
    code: str
    kept: str
    extra: str  # uncertain lines that the parser doesn't see; their names count
    problem: str | None


def job(file: SourceFile, arms: tuple[tuple[int, ...], ...], decorations: Decorations) -> Job:
    code, kept, left_out = visible(file.structure, arms, file.code_lines, file.kept_lines)
    extra = "\n".join(file.code_lines[number - 1] for number in left_out)
    return Job(file.path, "\n".join(code), decorations.blank("\n".join(kept)), extra, file.problem)


def run(task: Job) -> Facts:
    if task.problem is not None:
        return parse.token_facts(task.code + "\n" + task.extra, task.problem)
    facts = parse.parse(task.path, task.code, task.kept)
    if not task.extra:
        return facts
    names = frozenset(IDENTIFIER.findall(task.extra))
    return facts._replace(tokens=facts.tokens | names, outside=facts.outside | names)


def run_all(jobs: dict[SliceKey, Job]) -> dict[SliceKey, Facts]:
    size = sum(len(task.code) for task in jobs.values())
    helpers = min((os.cpu_count() or 1) - 1, 7)
    if size < _WORTH_A_PROCESS or helpers < 1:
        return {key: run(task) for key, task in jobs.items()}
    shares = _shares(jobs, helpers + 1)
    workers = [_Worker([jobs[key] for key in share]) for share in shares[1:]]
    found = {key: run(jobs[key]) for key in shares[0]}
    for share, worker in zip(shares[1:], workers, strict=True):
        results = worker.results() or [run(jobs[key]) for key in share]
        found.update(zip(share, results, strict=True))
    return found


def _shares(jobs: dict[SliceKey, Job], count: int) -> list[list[SliceKey]]:
    """Parts of about equal size, the largest jobs dealt first."""
    shares: list[list[SliceKey]] = [[] for _ in range(count)]
    sizes = [0] * count
    for key in sorted(jobs, key=lambda key: -len(jobs[key].code)):
        least = sizes.index(min(sizes))
        shares[least].append(key)
        sizes[least] += len(jobs[key].code)
    return shares


class _Worker:
    """A fresh interpreter, not a fork: the caller may hold threads and locks."""

    def __init__(self, jobs: list[Job]) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path[:] = {sys.path!r}; from greenlane.checks.source.index import serve; serve()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._jobs = pickle.dumps(jobs, protocol=pickle.HIGHEST_PROTOCOL)
        self._feed()

    def _feed(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._jobs)
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def results(self) -> list[Facts] | None:
        """What the worker found; None when it died, so that the caller does the work itself."""
        assert self._process.stdout is not None
        data = self._process.stdout.read()
        if self._process.wait() != 0 or not data:
            return None
        loaded: list[Facts] = pickle.loads(data)
        return loaded


def serve() -> None:
    """The worker's side: jobs in, facts out."""
    jobs: Iterable[Job] = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps([run(task) for task in jobs], protocol=pickle.HIGHEST_PROTOCOL))

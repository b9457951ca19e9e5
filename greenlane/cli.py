"""The command line: one function per verb. Each imports what it needs when called, so that start-up stays light."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from greenlane import __version__
from greenlane.errors import EnvironmentMissing, GreenlaneError

Verb = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.verb(arguments))
    except GreenlaneError as error:
        print(f"greenlane: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader left; Python would complain while flushing at exit
        return 0
    except KeyboardInterrupt:
        return 130


def list_lanes(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import export

    return export.command(arguments)


def explain(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import explain

    return explain.command(arguments)


def schema(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import jsonschema

    return jsonschema.command(arguments)


def init(arguments: argparse.Namespace) -> int:
    from greenlane.lanes import init

    return init.command(arguments)


def doctor(arguments: argparse.Namespace) -> int:
    from greenlane.lanes import doctor

    return doctor.command(arguments)


def run(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.lanes import run

    code = run.command(arguments)
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        from greenlane.report import summary

        summary.after_run(arguments.matrix, arguments.lanes)
    return code


def check(arguments: argparse.Namespace) -> int:
    from greenlane.checks import verb

    return verb.command(arguments)


def shell(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.lanes import shell

    return shell.command(arguments)


def logs(arguments: argparse.Namespace) -> int:
    from greenlane.lanes import logs

    return logs.command(arguments)


def reproduce(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.lanes import reproduce

    return reproduce.command(arguments)


def images(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.lanes import images

    return images.command(arguments)


def anchors(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.lanes import anchors

    return anchors.command(arguments)


def review(arguments: argparse.Namespace) -> int:
    from greenlane.report import review

    return review.command(arguments)


def comment(arguments: argparse.Namespace) -> int:
    from greenlane.github import comment

    return comment.command(arguments)


def ci(arguments: argparse.Namespace) -> int:
    from greenlane.github import ci

    return ci.command(arguments)


def ledger(arguments: argparse.Namespace) -> int:
    from greenlane.ledger import command

    return command.command(arguments)


def report(arguments: argparse.Namespace) -> int:
    from greenlane.report import command, table

    if arguments.table:
        return table.command(arguments)
    return command.command(arguments)


def emulate(arguments: argparse.Namespace) -> int:
    _on_linux()
    from greenlane.emulator import command

    return command.command(arguments)


def _on_linux() -> None:
    """For verbs that run lanes: process groups, locks and limits are those of Linux."""
    if sys.platform != "linux":
        raise EnvironmentMissing(
            f"lanes run on Linux, and this is {sys.platform}; use WSL or a Linux machine "
            "(list, explain, check, init and ci render work everywhere)"
        )


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="greenlane", description="One YAML matrix, every backend, one honest verdict.")
    top.add_argument("--version", action="version", version=f"greenlane {__version__}")
    verbs = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for declare in (_matrix_verbs, _lane_verbs, _check_verb, _review_verbs, _emulate_verb):
        declare(verbs)
    return top


def _verb(verbs: argparse._SubParsersAction, name: str, verb: Verb, text: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]
    command: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    command.set_defaults(verb=verb)
    command.add_argument(
        "--matrix", type=Path, default=Path("matrix.yaml"), metavar="FILE", help="the matrix (matrix.yaml)"
    )
    return command


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _matrix_verbs(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    command = _verb(verbs, "list", list_lanes, "show the lanes of the matrix")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--github", action="store_true", help="as a matrix for fromJSON, in groups below 256 rows")
    command.add_argument("--select", metavar="EXPR", help="globs, tags, 'backend:rocm and not arch:gfx9*'")
    command.add_argument("--changed-since", metavar="REV", help="only lanes that a change since REV may affect")

    command = _verb(verbs, "explain", explain, "say where each value of a lane came from, or why it does not exist")
    command.add_argument("lane", metavar="LANE")
    command.add_argument("--select", metavar="EXPR", help="say why the lane was or was not selected")
    command.add_argument("--changed-since", metavar="REV", help="say why a change since REV selects the lane or not")

    _verb(verbs, "schema", schema, "print the JSON Schema of the matrix")
    command = _verb(verbs, "init", init, "write a first matrix.yaml and noxfile.py for the project in this folder")
    command.add_argument("-C", dest="directory", type=Path, default=Path(), metavar="DIR")
    _verb(verbs, "doctor", doctor, "say what this machine can run of the matrix and what to install for the rest")


def _lane_verbs(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    command = _verb(verbs, "run", run, "run lanes and write their records")
    command.add_argument("lanes", nargs="+", metavar="LANE")
    command.add_argument("--base", metavar="REV", help="compare with REV; an unexplained red reruns its stage there")
    command.add_argument("--merge", action="store_true", help="run on the merge of head and base")
    command.add_argument("--executor", choices=("auto", "host", "docker"))
    command.add_argument("--until", metavar="STAGE", help="stop after this stage")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="lanes side by side (1)")
    command.add_argument("--keep-going", action="store_true", help="run the other lanes after a red one")
    command.add_argument("--fresh", action="store_true", help="reuse no record and no build tree")

    command = _verb(verbs, "shell", shell, "open a shell in a lane's image at its build tree")
    command.add_argument("lane", metavar="LANE")
    command = _verb(verbs, "logs", logs, "show a lane's logs")
    command.add_argument("lane", metavar="LANE")
    command.add_argument("--stage", metavar="STAGE")
    command = _verb(verbs, "reproduce", reproduce, "run a record's commit, image and inputs again")
    command.add_argument("record", metavar="RECORD")

    command = _verb(verbs, "images", images, "build, seed, list or prune lane images")
    command.add_argument("action", choices=("build", "seed", "ls", "prune"))
    command.add_argument("lanes", nargs="*", metavar="LANE", help="only the images of these lanes")

    command = _verb(verbs, "anchors", anchors, "capture a device's token anchors")
    command.add_argument("action", choices=("capture",))
    command.add_argument("lane", metavar="LANE")


def _check_verb(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    command = _verb(verbs, "check", check, "static checks over all lanes at once")
    command.add_argument("-C", dest="directory", type=Path, default=Path(), metavar="DIR", help="the project's folder")
    command.add_argument("--lane", action="append", default=[], metavar="L", help="only this lane (repeatable)")
    command.add_argument("--rule", action="append", default=[], metavar="R", help="only this rule (repeatable)")
    command.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text")
    command.add_argument("--baseline", type=Path, metavar="FILE", help="count only findings that are not in FILE")
    command.add_argument("--confirm", action="store_true", help="let clang confirm or withdraw findings")
    command.add_argument("--fix", action="store_true", help="apply safe suggestions and check again")


def _review_verbs(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    command = _verb(verbs, "review", review, "verdicts for a change: records, baseline, claims, merge probe")
    command.add_argument("--base", metavar="REV", default="main")
    command.add_argument("--head", metavar="REV", default="HEAD")
    command.add_argument("--pr-body", type=Path, metavar="FILE")
    command.add_argument(
        "--other", action="append", default=[], metavar="REF", help="other open changes to try merging with; globs"
    )
    command.add_argument("--prove", metavar="GATE", help="break what GATE guards and require it to go red")
    command.add_argument(
        "--lane", action="append", default=[], metavar="L", help="--prove: only this lane (repeatable)"
    )
    command.add_argument(
        "--format", choices=("markdown", "json", "html", "text"), help="text on a terminal, markdown elsewhere"
    )

    command = _verb(verbs, "comment", comment, "create or update the sticky comment of a pull request")
    command.add_argument("--repo", required=True, metavar="O/R")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--pr", type=_number, metavar="N")
    which.add_argument("--run", type=_number, metavar="ID", help="the pull request and the records of a workflow run")
    command.add_argument("--author", metavar="LOGIN", help="whose comment it is, where the token may not say")
    command.add_argument("--verdict", action="store_true", help="also a check run with annotations, or a status")

    command = _verb(verbs, "ci", ci, "render the GitHub workflows, and what they call")
    command.add_argument("action", choices=("render", "plan", "gate", "keep"))
    command.add_argument("--check", action="store_true", help="render: fail if the files in the tree are stale")
    command.add_argument("--records", type=Path, metavar="DIR", help="gate: the folder of the run's records")
    command.add_argument("--base", metavar="REV", help="gate: the base whose rules judge")
    command.add_argument("--head", metavar="REV", default="HEAD", help="gate: the commit that is judged")
    command.add_argument("--repo", metavar="O/R", help="keep: the repository")
    command.add_argument("--run", type=_number, metavar="ID", help="keep: the workflow run whose records are kept")

    command = _verb(verbs, "ledger", ledger, "look after the records")
    command.add_argument("action", choices=("ls", "history", "export", "import", "gc", "reindex"))
    command.add_argument("--lane", metavar="LANE", help="ls, history: only this lane")
    command.add_argument("--ref", metavar="REF", help="export, import: the git ref (refs/greenlane/ledger)")
    command.add_argument("--from", dest="source", type=Path, metavar="DIR", help="import: a folder of record files")
    command.add_argument("--trust", choices=("fork", "runner"), help="import --from: how far they are trusted (fork)")
    command.add_argument(
        "--commit", action="append", default=[], metavar="REV", help="import --from: only records of REV (repeatable)"
    )
    command.add_argument(
        "--keep", type=int, default=500, metavar="N", help="gc: commits kept from each branch tip (500)"
    )

    command = _verb(verbs, "report", report, "render the records for other readers")
    command.add_argument(
        "--format",
        choices=("html", "markdown", "json", "junit", "sarif", "text"),
        help="text on a terminal, markdown elsewhere",
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    command.add_argument("--table", choices=("backends",), help="row, lane, evidence and milestone, for a README")
    command.add_argument("--into", type=Path, metavar="FILE", help="table: write it between its markers in FILE")
    command.add_argument("--check", action="store_true", help="table: fail if FILE is stale; needs no records")


def _emulate_verb(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    command = verbs.add_parser("emulate", help="run a HIP program with no AMD GPU")
    command.set_defaults(verb=emulate)
    command.add_argument("--arch", default="gfx1100", metavar="ARCH")
    command.add_argument("--sanitize", action="store_true", help="check bounds, races and uninitialised reads")
    command.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS...")

"""`greenlane ci`: renders the workflows, and is what they call: plan, gate, keep."""

from __future__ import annotations

import argparse

from greenlane.github import gate, keep, plan, workflows


def command(arguments: argparse.Namespace) -> int:
    return VERBS[arguments.action](arguments)


VERBS = {"render": workflows.command, "plan": plan.command, "gate": gate.command, "keep": keep.command}

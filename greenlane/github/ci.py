"""`greenlane ci`: renders the workflows, and is what they call: plan, gate, keep."""

from __future__ import annotations

import argparse
import importlib

MODULES = {"render": "workflows", "plan": "plan", "gate": "gate", "keep": "keep"}  # each imported when called


def command(arguments: argparse.Namespace) -> int:
    return int(importlib.import_module(f"greenlane.github.{MODULES[arguments.action]}").command(arguments))

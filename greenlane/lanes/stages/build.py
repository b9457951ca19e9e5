"""Builds, then reads out of the objects what was really built."""

from __future__ import annotations

from greenlane.lanes import ccache, hip_headers, objects
from greenlane.lanes.build_tree import renew_if_configured_otherwise
from greenlane.lanes.commands import run_commands
from greenlane.lanes.context import Context, Ended
from greenlane.matrix.model import Stage


def run(context: Context) -> Ended:
    renew_if_configured_otherwise(context)
    hip_headers.distrust_stale_objects(context)
    ended = run_commands(context, Stage.BUILD, env=ccache.environment(context))
    measured = {"ccache": ccache.statistics(context), **objects.survey(context.host.build, context.log.lines())}
    hip_headers.remember(context, complete=ended.outcome.is_green)
    return Ended(ended.outcome, ended.reason, {key: value for key, value in measured.items() if value})

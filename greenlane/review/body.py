"""What the pull request's text lacks by the merge base's rules: fields, the row that owns its lanes, trailers."""

from __future__ import annotations

from itertools import islice

from greenlane.matrix.checks import ChecksConfig, Rule
from greenlane.matrix.model import Matrix
from greenlane.review.model import TextProblem
from greenlane.review.sentences import MAX_BODY

MOST = 30


def problems(text: str, matrix: Matrix) -> tuple[TextProblem, ...]:
    """Everything that the rule `record` finds; nothing where the matrix asks for no fields or turns the rule off."""
    config = ChecksConfig.model_validate(dict(matrix.checks))
    if config.record is None or Rule.RECORD in config.off:
        return ()
    from greenlane.checks.rules.record import problems as found

    told = found(text[:MAX_BODY], config.record, matrix)
    blocks = config.severity_of(Rule.RECORD) == "error"
    return tuple(TextProblem(line, message, tuple(lanes), blocks) for line, message, lanes in islice(told, MOST))

"""Which records of a base commit spare its run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from greenlane.lanes import base, infra
from greenlane.lanes.session import Session
from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import FirstError, Outcome, StageResult
from tests.ledger.conftest import make_record

HEAD = "b" * 40
PREVENTED = FirstError(message="no daemon", fingerprint="", rule=infra.RULE)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"head": "c" * 40}, False),
        ({"lane": "rocm"}, False),
        ({"dirty": True}, False),
        ({"trust": "fork"}, False),
        ({"stages": (StageResult(stage=Stage.BUILD, outcome=Outcome.FAIL, first_error=PREVENTED),)}, False),
        ({"stages": (StageResult(stage=Stage.TEST, outcome=Outcome.PASS),)}, False),
    ],
)
def test_a_record_of_the_base_counts_only_when_it_may_be_a_baseline(
    changes: dict[str, Any], known: bool, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.put(make_record(**({"head": HEAD} | changes)))
    session = cast(Session, SimpleNamespace(ledger=ledger, base=HEAD))
    assert base._is_known(session, Lane(id="cpu", backend="cpu"), Stage.BUILD) is known

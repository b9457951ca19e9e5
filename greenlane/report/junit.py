"""Records as JUnit XML: a suite per lane, a case per stage; red is a failure, what was not run is skipped and says why.

Built as a tree and not from a template, so that no text can ever be markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from greenlane.record.model import Outcome, Record, StageResult
from greenlane.report.markdown import plain


def render(records: Sequence[Record]) -> str:
    root = ElementTree.Element("testsuites")
    for record in records:
        suite = ElementTree.SubElement(root, "testsuite", name=record.lane, time=str(record.duration_s))
        for stage in record.stages:
            _case(suite, record, stage)
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, record: Record, stage: StageResult) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=record.lane, name=str(stage.stage), time=str(stage.duration_s)
    )
    message = plain(stage.first_error.message if stage.first_error else stage.reason or stage.outcome)
    if stage.outcome.is_red:
        ElementTree.SubElement(case, "failure", message=message, type=str(stage.outcome))
    elif stage.outcome in {Outcome.NOT_RUN, Outcome.BLOCKED}:
        ElementTree.SubElement(case, "skipped", message=message)

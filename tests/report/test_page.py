"""The HTML page in a real browser: it runs under its own CSP, with a keyboard, on a telephone; no text is executed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenlane.ledger import Ledger
from greenlane.matrix import load
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Record
from greenlane.report import page, terminal
from greenlane.report.page.history import Past
from greenlane.report.page.lane import view
from greenlane.report.page.source import of_records
from greenlane.report.templates import Templates
from greenlane.review.model import (
    Claim,
    ClaimState,
    Conflict,
    FoundFinding,
    LaneReview,
    MergeProbe,
    PolicyChange,
    Review,
    TextProblem,
    Verdict,
)
from tests.report import gallery
from tests.report.browser import Browser, browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium: apt-get install chromium")

RED = "rocm-gfx1100-wave32"
RICH = "cpu"
VISIBLE = "[...document.querySelectorAll('#grid .cell')].filter(c => c.offsetParent !== null)"
FOCUSED = "document.activeElement.getAttribute('href') || document.activeElement.id"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    matrix = gallery.filled(folder / "engine", gallery.MIDDLE, history=2)
    target = folder / "thirty.html"
    target.write_text(gallery.page_of(matrix))
    return target


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("fragment", ["", f"#lane-{RICH}", f"#lane-{RED}"])
def test_it_complains_of_nothing_asks_for_nothing_and_fits(
    chrome: Browser, thirty: Path, width: int, dark: bool, fragment: str
) -> None:
    chrome.open(thirty, fragment, width=width, dark=dark)
    assert chrome.complaints() == []
    assert chrome.requests() == []
    assert chrome.run("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.lane:target, .lane:target *')].filter(e => !(e instanceof SVGElement)"
    assert (
        chrome.run(f"{wide} && e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map(e => e.outerHTML.slice(0, 120))")
        == []
    )


def test_only_its_own_script_and_style_may_run(chrome: Browser, thirty: Path) -> None:
    chrome.open(thirty)
    inject = """(() => { const s = document.createElement('script'); s.textContent = 'window.owned = 1';
        document.body.append(s); const i = document.createElement('img'); i.src = 'https://localhost/x.png';
        document.body.append(i); document.body.setAttribute('style', 'color: red'); return window.owned })()"""
    assert chrome.run(inject) is None
    assert len([text for text in chrome.complaints() if "Content Security Policy" in text]) == 3


def test_the_text_filter_hides_lanes_and_counts_them(chrome: Browser, thirty: Path) -> None:
    chrome.open(thirty)
    assert chrome.run(f"{VISIBLE}.length") == 30
    chrome.press("/")
    for letter in "gfx1100":
        chrome.press(letter)
    assert chrome.run(f"{VISIBLE}.length") == 4
    assert chrome.run("document.getElementById('shown').textContent") == "4 of 30"
    assert chrome.run("[...document.querySelectorAll('.backend')].filter(b => !b.hidden).length") == 1
    chrome.press("Escape")
    assert chrome.run(f"{VISIBLE}.length") == 30


def test_the_chips_filter_by_verdict_and_backend(chrome: Browser, thirty: Path) -> None:
    chrome.open(thirty)
    chrome.run("document.querySelector('[data-word=fail].chip').click()")
    failed = chrome.run(f"{VISIBLE}.length")
    assert failed == 5
    chrome.run("document.querySelector('[data-backend=cuda].chip').click()")
    assert chrome.run(f"{VISIBLE}.map(c => c.firstChild.dataset.word)") == ["fail"] * 2
    chrome.run("document.querySelector('[data-word=fail].chip').click()")
    assert chrome.run(f"{VISIBLE}.length") == 9
    chrome.run("document.getElementById('text').value = 'no such lane'; text.dispatchEvent(new Event('input'))")
    assert chrome.run("document.getElementById('nothing').hidden") is False


def test_arrows_move_enter_opens_and_escape_returns(chrome: Browser, thirty: Path) -> None:
    chrome.open(thirty)
    chrome.run("document.querySelector('#grid .cell a').focus()")
    assert chrome.run("document.querySelectorAll('#grid .cell a[tabindex=\"0\"]').length") == 1
    walked = [chrome.run(FOCUSED)]
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home"):
        chrome.press(key)
        walked.append(chrome.run(FOCUSED))
    assert walked == [
        "#lane-cpu",
        "#lane-cpu-asan",
        "#lane-cuda-sm_80-debug",
        "#lane-cuda-sm_90-debug",
        "#lane-cuda-sm_90",
        "#lane-cuda-sm_80",
        "#lane-rocm-gfx1201-wave32",
        "#lane-cpu",
    ]
    outline = chrome.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    chrome.press("ArrowRight")
    chrome.press("Enter")
    assert chrome.becomes("document.querySelector('.lane:target')?.id", "lane-cpu-asan")
    assert chrome.becomes(FOCUSED, "name-cpu-asan")
    chrome.press("Escape")
    assert chrome.becomes("document.querySelector('.lane:target')", None)
    assert chrome.becomes(FOCUSED, "#lane-cpu-asan")


def test_the_theme_can_be_turned_over(chrome: Browser, thirty: Path) -> None:
    chrome.open(thirty, dark=True)
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = chrome.run(paper)
    chrome.run("document.getElementById('theme').click()")
    assert chrome.run(paper) != dark
    chrome.open(thirty, dark=True)
    kept = chrome.run(paper)
    chrome.run("localStorage.clear()")
    assert kept != dark


CONTRAST = """(() => {
  const channel = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const seen = {};
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest('script, style')) continue;
    const pair = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
    const ratio = (pair[0] + .05) / (pair[1] + .05);
    const name = e.tagName + '.' + e.className;
    seen[name] = Math.min(seen[name] || 99, ratio);
  }
  return seen; })()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("fragment", ["", f"#lane-{RICH}", f"#lane-{RED}"])
def test_text_can_be_read_in_both_themes(chrome: Browser, thirty: Path, dark: bool, fragment: str) -> None:
    chrome.open(thirty, fragment, dark=dark)
    chrome.run("document.querySelectorAll('.chip').forEach((chip, at) => at % 2 && chip.click())")
    found = chrome.run(CONTRAST)
    assert len(found) > 8
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def hostile(folder: Path) -> Path:
    """Every text of a record that a stranger may write holds markup."""
    matrix = gallery.filled(folder, gallery.SMALL, history=0)
    [lane] = load(matrix).lanes
    ledger = Ledger(folder / ".greenlane" / "ledger")
    made = gallery.record(lane, 0, red=Stage.BUILD, rich=True, error=gallery.HOSTILE)
    document = json.loads(made.model_dump_json(by_alias=True))
    good = json.loads(gallery.record(lane, 0, red=None, rich=True).model_dump_json(by_alias=True))
    document["stages"] += [stage for stage in good["stages"] if stage["stage"] in ("reach", "exact", "bench")]
    document = _poisoned(
        document,
        keep=(
            "lane",
            "stage",
            "outcome",
            "schema",
            "evidence",
            "require",
            "trust",
            "severity",
            "layer",
            "head",
            "base",
        ),
    )
    document["started"] = "2026-04-02T00:00:00+00:00"
    ledger.put(Record.model_validate(document))
    return matrix


def _poisoned(value: object, keep: tuple[str, ...]) -> object:
    if isinstance(value, dict):
        return {
            key if key in Record.model_fields or key != "combine" else gallery.HOSTILE: entry
            if key in keep
            else _poisoned(entry, keep)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_poisoned(entry, keep) for entry in value]
    return f"{value} {gallery.HOSTILE}" if isinstance(value, str) else value


def reviewed(folder: Path) -> str:
    """The page of a review in which all that comes from a stranger is hostile."""
    matrix = hostile(folder)
    told = gallery.HOSTILE
    lane = LaneReview(id="cpu", verdict=Verdict.NEW_RED, reason=told, backend="cpu", required=True,
                      missing=(Evidence.BUILT,), commit="a" * 40)  # fmt: skip
    review = Review(
        head="a" * 40,
        base="b" * 40,
        merge=MergeProbe("clean", conflicts=(Conflict(told, ((1, 2),)),), others={told: (Conflict(told),)}),
        lanes=(lane,),
        claims=(Claim(told, "built", ClaimState.UNPROVEN, told),),
        policy_changes=(PolicyChange(told, told, told, loosens=True),),
        notes=(told,),
        findings=(FoundFinding(told, told, told, 3, told, ("cpu",), suggestion=told),),
        text_problems=(TextProblem(1, told),),
        broken=told,
        base_commit=told,
        head_subject=told,
    )
    ledger = Ledger(folder / ".greenlane" / "ledger")
    records = of_records(ledger, load(matrix), told)
    return page.render(page.Page(told, records.lanes, review), Templates())


def test_a_review_of_a_broken_matrix_is_no_green_page(chrome: Browser, tmp_path: Path) -> None:
    review = Review(head="a" * 40, base="b" * 40, merge=MergeProbe("clean"), lanes=(), broken="matrix.yaml:1:1: oh")
    target = tmp_path / "broken.html"
    target.write_text(page.render(page.Page("engine", [], review), Templates()))
    chrome.open(target)
    assert chrome.complaints() == []
    assert chrome.run("document.querySelector('h1').className") == "bad"
    assert chrome.run("document.body.innerText.includes('matrix.yaml:1:1: oh')") is True
    assert terminal.render(page.Page("engine", [], review), styled=True).startswith("The matrix cannot be read")


@pytest.mark.parametrize("with_review", [False, True], ids=["records", "review"])
def test_nothing_that_a_stranger_wrote_is_executed(chrome: Browser, tmp_path: Path, with_review: bool) -> None:
    target = tmp_path / "hostile.html"
    folder = tmp_path / "engine"
    text = reviewed(folder) if with_review else gallery.page_of(hostile(folder))
    # Without the CSP, so that the escaping alone is tested: a canary would be able to run.
    target.write_text(text.replace("Content-Security-Policy", "x-off"))
    chrome.open(target, "#lane-cpu", width=400)
    hover = "document.querySelectorAll('*').forEach(e => e.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})))"
    chrome.run(hover)
    assert chrome.run("window.owned") is None
    assert chrome.run("document.scripts.length") == 1
    assert chrome.run("document.images.length") == 0
    assert chrome.run("document.querySelectorAll('b').length") == 0
    assert chrome.run("document.body.innerText.includes('onerror=window.owned=1')") is True
    assert chrome.run("document.documentElement.scrollWidth") <= 400
    assert chrome.requests() == []


def test_a_thousand_lanes_stay_usable(chrome: Browser, tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(gallery.matrix_text(gallery.LARGE))
    lanes = [
        view(lane, gallery.record(lane, seed, red=None, rich=seed % 5 == 0), "f" * 64, None, Past())
        for seed, lane in enumerate(load(matrix).lanes)
    ]
    target = tmp_path / "thousand.html"
    target.write_text(page.render(page.Page("engine", lanes), Templates()))
    assert target.stat().st_size < 8_000_000
    chrome.open(target)
    assert chrome.complaints() == []
    assert chrome.run(f"{VISIBLE}.length") == 1000
    chrome.run("document.getElementById('text').value = 'gfx950 v7'; text.dispatchEvent(new Event('input'))")
    assert chrome.run("document.getElementById('shown').textContent") == "10 of 1000"


def test_it_can_be_read_without_script(chrome: Browser, thirty: Path) -> None:
    chrome.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chrome.open(thirty, f"#lane-{RED}")
        assert chrome.run("document.querySelector('.filters').hidden") is True
        assert chrome.run("document.querySelector('.lane:target').innerText.includes('First error')") is True
    finally:
        chrome.call("Emulation.setScriptExecutionDisabled", value=False)

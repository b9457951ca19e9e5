"""A project's own templates: they replace the shipped ones, escape what they show, and break in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane import cli
from greenlane.errors import MatrixError
from greenlane.record.git import git
from greenlane.report.templates import MAX_BYTES, Templates, folder_loader, of_commit, shipped

ROOT = Path(__file__).parents[2]
MATRIX = "backends: {cpu: {compiler: gcc}}\nlanes: {products: [{backend: cpu}]}\nstages: {build: [make]}\n"
IDENTITY = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "look"
    made.mkdir()
    return made


def rendered(folder: Path, name: str, **values: object) -> str:
    return Templates(folder_loader(folder)).render(name, **values)


def refused(folder: Path, name: str, **values: object) -> str:
    with pytest.raises(MatrixError) as caught:
        rendered(folder, name, **values)
    assert caught.value.exit_code == 2
    [line] = str(caught.value).splitlines()
    return line


def test_every_template_is_shipped() -> None:
    names = {str(path.relative_to(shipped())) for path in shipped().rglob("*") if path.is_file()}
    assert {"comment.md", "summary.md", "page/page.html", "page/page.css", "page/page.js"} <= names


def test_an_override_replaces_one_template_and_may_use_the_others(folder: Path) -> None:
    (folder / "summary.md").write_text("Ours:\n{% include 'comment.md' %}")
    shown = rendered(folder, "summary.md", marker="m", sections=[])
    assert shown == "Ours:\nm\n"
    assert rendered(folder, "comment.md", marker="m", sections=[]) == "m\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a.md", "\\<b\\> @\u200byou"), ("a.html", "&lt;b&gt; @you"), ("a.txt", "<b> @you")],
)
def test_values_are_escaped_for_the_form(folder: Path, name: str, shown: str) -> None:
    (folder / name).write_text("{{ value }}")
    assert rendered(folder, name, value="<b> @you") == shown


def test_filters_make_code_and_blocks_that_are_escaped_once(folder: Path) -> None:
    (folder / "a.md").write_text("{{ value|code }} {{ value|text(5) }}\n{{ value|block }}")
    assert rendered(folder, "a.md", value="a|`<b>") == "``a\\|`<b>`` a\\|\\`\\<…\n```text\na|`<b>\n```"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one\n{% if %}", "a.md:2: Expected an expression"),
        ("one\n\n{{ lanes.nothing }}", "a.md:3: 'dict object' has no attribute 'nothing'"),
        ("{{ unknown }}", "a.md:1: 'unknown' is undefined"),
        ("a\n{{ 1 / 0 }}", "a.md:2: division by zero"),
        ("{% include 'other.md' %}", "a.md:1: there is no template other.md"),
        ("{{ [].append(1) }}", "a.md:1: not allowed in a template"),
        ("{{ ''.__class__.__mro__ }}", "a.md:1: not allowed in a template"),
        ("{{ lanes|nofilter }}", "a.md:1: No filter named 'nofilter'"),
        ("{% for n in range(10 ** 8) %}{% endfor %}", "a.md:1: Range too big"),
    ],
)
def test_a_broken_override_is_one_line_with_file_and_line(folder: Path, text: str, said: str) -> None:
    (folder / "a.md").write_text(text)
    assert refused(folder, "a.md", lanes={}).startswith(f"{folder}/{said}")


def test_text_that_is_not_utf8_names_its_line(folder: Path) -> None:
    (folder / "a.md").write_bytes(b"one\ntwo \xff")
    assert refused(folder, "a.md").startswith(f"{folder}/a.md:2: not UTF-8 text")


def test_a_huge_template_is_refused(folder: Path) -> None:
    (folder / "a.md").write_text("x" * (MAX_BYTES + 1))
    assert "larger than" in refused(folder, "a.md")


def test_no_link_leads_out_of_the_folder(folder: Path) -> None:
    secret = folder.parent / "secret.md"
    secret.write_text("secret")
    (folder / "linked.md").symlink_to(secret)
    (folder / "a.md").write_text("{% include '../secret.md' %}")
    for name in ("linked.md", "a.md"):
        assert "secret" not in refused(folder, name).replace("secret.md", "")


def test_the_matrix_names_the_folder(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(MATRIX + "templates: look\n")
    (folder / "summary.md").write_text("ours: {{ lanes|length }} lanes\n")
    assert cli.main(["report", "--matrix", str(matrix)]) == 0
    assert capsys.readouterr().out == "ours: 0 lanes\n"
    (folder / "summary.md").write_text("\n{{ lanes.nothing() }}")
    assert cli.main(["report", "--matrix", str(matrix)]) == 2
    assert capsys.readouterr().err.startswith(f"greenlane: {folder}/summary.md:2: ")


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(MATRIX + "templates: nowhere\n")
    assert cli.main(["report", "--matrix", str(matrix)]) == 2
    assert "templates: nowhere: there is no such folder" in capsys.readouterr().err


def test_a_change_is_told_of_in_the_words_of_its_merge_base(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(MATRIX + "templates: look\n")
    (folder / "comment.md").write_text("base {{ marker }}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "matrix.yaml", "look")
    git(tmp_path, "commit", "-q", "-m", "base", env=IDENTITY)
    commit = git(tmp_path, "rev-parse", "HEAD").stdout.decode().strip()
    (folder / "comment.md").write_text("all is green")
    found = of_commit(tmp_path, commit, "matrix.yaml")
    assert found.render("comment.md", marker="m") == "base m"
    assert found.render("summary.md", lanes=[], left_out=0) == "No lane has run.\n"
    assert of_commit(tmp_path, None, "matrix.yaml").render("comment.md", marker="m", sections=[]) == "m\n"


def test_a_page_whose_script_ends_itself_is_refused(folder: Path) -> None:
    from greenlane.report import page

    (folder / "page").mkdir()
    (folder / "page" / "page.js").write_text("let a = '</script>'")
    with pytest.raises(MatrixError, match="page/page.js: holds its own end tag"):
        page.render(page.Page("engine", []), Templates(folder_loader(folder)))

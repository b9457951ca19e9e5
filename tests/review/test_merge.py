"""Whether a change merges is asked of git, and what cannot be known is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.errors import MatrixError
from greenlane.record.git import git
from tests.review.conftest import MATRIX, Story


def test_a_clean_merge_has_a_tree(story: Story) -> None:
    merge = story.review().merge
    assert (merge.state, merge.behind, merge.conflicts) == ("clean", 0, ())
    assert merge.tree and len(merge.tree) == 40


def test_a_conflict_names_files_and_lines_and_blocks(story: Story) -> None:
    story.branch("main")
    lines = (story.repository / "src/attn.cpp").read_text()
    story.commit("rival", {"src/attn.cpp": lines.replace("line 4\n", "line IV\n")})
    told = story.review()
    [conflict] = told.merge.conflicts
    assert (told.merge.state, told.merge.tree, told.merge.behind) == ("conflict", None, 1)
    assert (conflict.file, conflict.own) == ("src/attn.cpp", True)
    [(first, last)] = conflict.hunks
    assert first <= 5 <= last
    assert told.exit_code == 1


def test_other_open_changes_that_conflict_are_named(story: Story) -> None:
    story.branch("rival", "main")
    lines = (story.repository / "src/attn.cpp").read_text()
    story.commit("rival", {"src/attn.cpp": lines.replace("line 4\n", "line IV\n")})
    story.branch("friend", "main")
    story.commit("friend", {"src/other.cpp": "x\n"})
    others = story.review(others=("rival", "friend", "nowhere")).merge.others
    assert {name: [conflict.file for conflict in found] for name, found in others.items()} == {
        "rival": ["src/attn.cpp"]
    }


def test_histories_without_a_common_commit_are_unknown_not_clean(story: Story) -> None:
    git(story.repository, "checkout", "-q", "--orphan", "island")
    story.commit("island", {"matrix.yaml": MATRIX})
    told = story.review(head="island")
    assert told.merge.state == "unknown"
    assert "share no commit" in str(told.merge.reason)
    assert all(lane.blocks for lane in told.lanes)


def test_a_shallow_clone_says_what_to_fetch(story: Story, tmp_path: Path) -> None:
    story.branch("main")
    story.commit("tip")
    clone = tmp_path / "clone"
    url = story.repository.as_uri()
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", url, str(clone))
    git(clone, "branch", "-q", "change", "origin/change")
    story.repository = clone
    assert "git fetch --unshallow" in str(story.review().merge.reason)


@pytest.mark.parametrize("where", ["base", "head"])
def test_a_revision_that_is_not_here_is_a_mistake(story: Story, where: str) -> None:
    with pytest.raises(MatrixError, match=f"--{where} gone: no such commit here; fetch it"):
        story.review(**{where: "gone"})  # type: ignore[arg-type]


def test_a_work_tree_is_never_touched(story: Story) -> None:
    before = git(story.repository, "status", "--porcelain").stdout
    story.review()
    assert git(story.repository, "status", "--porcelain").stdout == before

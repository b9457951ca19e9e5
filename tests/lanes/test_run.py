"""`greenlane run` from end to end on the host: exit codes, records, order, resume, reuse."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.lanes.conftest import STAGES, Project


def wait_for(condition: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_a_green_lane_leaves_a_record_of_everything_that_went_in(project: Project) -> None:
    done = project.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    record = project.records()[-1]
    assert record["outcome"] == "pass" and record["head"] == project.git("rev-parse", "HEAD")
    assert record["dirty"] is False and record["row"] == "R"
    assert record["evidence"] == ["checked", "built", "tested", "ran-on-target"]
    assert {"matrix", "lane", "tree", "inputs", "greenlane"} <= {
        key for key, value in record["digests"].items() if value
    }  # type: ignore[attr-defined]
    assert [stage["stage"] for stage in record["stages"]] == ["check", "configure", "build", "test"]  # type: ignore[attr-defined]
    assert (project.root / ".greenlane" / str(project.stages()["test"]["log"])).read_text().endswith("built\n")


def test_a_red_stage_blocks_the_rest_and_says_its_first_error(project: Project) -> None:
    project.write(stages={**STAGES, "build": "echo 'a.cpp:3:1: error: no such widget' >&2; exit 2"})
    done = project.greenlane("run", "cpu")
    assert done.returncode == 1
    stages = project.stages()
    assert stages["build"]["outcome"] == "fail" and stages["test"]["outcome"] == "blocked"
    error = stages["build"]["first_error"]
    assert (error["file"], error["line"], error["message"]) == ("a.cpp", 3, "no such widget")  # type: ignore[index]
    assert "a.cpp:3: no such widget" in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cpux"], "did you mean cpu?"),
        (["cpu", "--until", "biuld"], "no such stage"),
        (["cpu", "--jobs", "0"], "at least one lane"),
        (["cpu", "--base", "no-such-rev"], "no such commit"),
        (["cpu", "--merge"], "needs --base"),
        (["cpu", "--executor", "docker"], "no dockerfile"),
    ],
)
def test_mistakes_in_arguments_are_one_line_and_exit_code_2(project: Project, arguments: list[str], said: str) -> None:
    done = project.greenlane("run", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr
    assert project.records() == []


def test_evidence_that_is_required_and_not_reached_is_exit_code_4(project: Project) -> None:
    done = project.greenlane("run", "cpu", "--until", "build")
    assert done.returncode == 4
    assert "missing: tested" in done.stdout


def test_no_daemon_is_exit_code_3(project: Project) -> None:
    (project.root / "Dockerfile").write_text("FROM debian:forky\n")
    project.write(executor="docker", dockerfile="Dockerfile")
    done = project.greenlane("run", "cpu", DOCKER_HOST="unix:///nonexistent.sock")
    assert done.returncode == 3
    assert "no container daemon answers" in done.stdout + done.stderr


def test_what_the_machine_prevents_is_recorded_as_no_verdict_on_the_lane(project: Project) -> None:
    (project.root / "Dockerfile").write_text("FROM debian:forky\n")
    project.write(executor="docker", dockerfile="Dockerfile")
    project.greenlane("run", "cpu", DOCKER_HOST="unix:///nonexistent.sock")
    record = project.records()[-1]
    assert record["outcome"] == "fail" and record["evidence"] == []
    stages = project.stages()
    assert stages["image"]["first_error"]["rule"] == "infra"  # type: ignore[index]
    assert "no container daemon answers" in str(stages["image"]["reason"])
    assert {stages[name]["outcome"] for name in ("check", "configure", "build", "test")} == {"blocked"}


def test_auto_falls_back_to_the_host_and_says_so(project: Project) -> None:
    (project.root / "Dockerfile").write_text("FROM debian:forky\n")
    project.write(executor="auto", dockerfile="Dockerfile")
    done = project.greenlane("run", "cpu", DOCKER_HOST="unix:///nonexistent.sock")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs on the host: no container daemon answers" in done.stdout


def test_an_unchanged_green_lane_is_answered_from_its_record(project: Project) -> None:
    project.greenlane("run", "cpu")
    done = project.greenlane("run", "cpu")
    first, second = project.records()
    assert done.returncode == 0 and "built > " not in done.stdout
    assert first["reused_from"] is None and second["reused_from"] is not None
    assert second["stages"] == first["stages"] and second["evidence"] == first["evidence"]


def test_a_change_that_matters_is_never_answered_from_an_older_record(project: Project) -> None:
    project.greenlane("run", "cpu")
    (project.root / "a.cpp").write_text("int b;\n")
    project.greenlane("run", "cpu")
    (project.root / "untracked.cpp").write_text("int c;\n")
    project.greenlane("run", "cpu")
    project.write(env={"X": "1"})
    project.greenlane("run", "cpu")
    project.greenlane("run", "cpu", "--fresh")
    assert [record["reused_from"] for record in project.records()] == [None] * 5


def test_committing_what_was_tested_is_no_change(project: Project) -> None:
    (project.root / "a.cpp").write_text("int b;\n")
    project.greenlane("run", "cpu")
    head = project.commit()
    project.greenlane("run", "cpu")
    last = project.records()[-1]
    assert last["reused_from"] is not None
    assert (last["head"], last["dirty"]) == (head, False)


def test_a_red_lane_is_run_again(project: Project) -> None:
    project.write(stages={**STAGES, "test": "exit 1"})
    project.greenlane("run", "cpu")
    assert project.greenlane("run", "cpu").returncode == 1
    assert project.records()[-1]["reused_from"] is None


def test_a_tree_that_changes_while_the_lane_runs_certifies_nothing(project: Project) -> None:
    project.write(stages={**STAGES, "test": "echo 'int changed;' > {source}/a.cpp"})
    project.commit()
    done = project.greenlane("run", "cpu")
    assert done.returncode == 1
    assert project.records()[-1]["outcome"] == "void" and project.records()[-1]["evidence"] == []
    assert "the tree changed" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_was_cut_goes_on_at_the_cut_stage(project: Project, number: signal.Signals) -> None:
    waits = "echo x >> {artifacts}/tests; test -f {artifacts}/go || sleep 300"
    project.write(stages={**STAGES, "build": "echo x >> {artifacts}/builds", "test": waits})
    project.commit()
    artifacts = project.root / ".greenlane/lanes/cpu/artifacts"
    cut = subprocess.Popen(
        project.command("run", "cpu"), cwd=project.root, env=project.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    wait_for(lambda: (artifacts / "tests").exists())
    cut.send_signal(number)
    cut.communicate(timeout=60)
    assert cut.returncode in (130, -signal.SIGKILL)
    assert project.records() == []
    wait_for(lambda: "sleep 300" not in processes_in(artifacts))
    (artifacts / "go").touch()
    done = project.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "build kept from the run that was cut" in done.stdout
    assert (artifacts / "builds").read_text() == "x\n"
    assert (artifacts / "tests").read_text() == "x\nx\n"


def processes_in(folder: Path) -> str:
    """The command lines of processes whose working folder belongs to the lane."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder.parent) in str((process / "cwd").readlink()):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return "\n".join(found)


def test_a_build_tree_is_kept_while_the_lane_is_configured_in_the_same_way(project: Project) -> None:
    stages = {**STAGES, "build": "echo x >> {build}/kept; wc -l < {build}/kept"}
    project.write(stages=stages)
    for said in ("1", "2"):
        (project.root / "a.cpp").write_text(f"int a{said};\n")
        assert project.greenlane("run", "cpu", "--until", "build").returncode == 4
        log = project.root / ".greenlane/lanes/cpu/logs/build.log"
        assert log.read_text().splitlines()[-1] == said
    project.write(stages={**stages, "configure": "echo configured with another compiler"})
    project.greenlane("run", "cpu", "--until", "build")
    assert log.read_text().splitlines()[-1] == "1", "what was configured otherwise is not built upon"


def test_a_half_written_state_is_not_trusted(project: Project) -> None:
    state = project.root / ".greenlane/lanes/cpu/state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"key": "abc", "stages": [{"stage": "build", "out')
    assert project.greenlane("run", "cpu").returncode == 0
    assert not state.exists()


def test_a_read_only_state_folder_is_said_in_one_line(project: Project) -> None:
    (project.root / ".greenlane").write_text("a file where a folder must be")
    done = project.greenlane("run", "cpu")
    assert done.returncode == 3
    assert "cannot write" in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_ends_in_one_line_and_no_half_record(project: Project, tmp_path: Path) -> None:
    """The limit on file sizes stands in for a full disk: every write beyond it fails as one would."""
    project.write(stages={**STAGES, "build": "head -c 3000000 /dev/zero | tr '\\0' y | fold -w 1000"})
    script = f"trap '' XFSZ; ulimit -f 1000; exec {' '.join(project.command('run', 'cpu'))}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=project.root, env=project.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stdout[-500:] + done.stderr[-500:]
    assert "Traceback" not in done.stderr
    for record in project.records():
        assert record["evidence"] in ([], ["checked"]), "a lane that a full disk cut proves nothing more"
    assert project.greenlane("run", "cpu").returncode in (0, 1), "nothing half-written stands in the way"


def test_a_stage_that_overstays_is_red(project: Project) -> None:
    project.write(stages={**STAGES, "test": "sleep 300"}, stage_timeouts={"test": "1s"})
    done = project.greenlane("run", "cpu")
    assert done.returncode == 1
    assert "time limit" in str(project.stages()["test"]["reason"])


def test_secrets_that_the_matrix_lets_in_are_masked(project: Project) -> None:
    project.write(
        passthrough=["UPLOAD_TOKEN"], stages={**STAGES, "test": "echo token=$UPLOAD_TOKEN other=$OTHER_TOKEN"}
    )
    done = project.greenlane("run", "cpu", UPLOAD_TOKEN="abcdef123456", OTHER_TOKEN="stays-out")
    log = (project.root / ".greenlane/lanes/cpu/logs/test.log").read_text()
    assert "token=*** other=\n" in log
    assert "abcdef123456" not in done.stdout + log and "stays-out" not in log


def test_lanes_run_side_by_side_and_a_red_one_stops_what_has_not_begun(project: Project) -> None:
    document = {
        "version": 1,
        "backends": {
            "cpu": {
                "executor": "host", "row": "R", "require": ["checked"],
                "variants": {name: {} for name in "abcd"}, "stages": {"build": "exit 1"},
            }
        },
        "lanes": {"products": [{"backend": "cpu", "variant": list("abcd")}]},
    }  # fmt: skip
    (project.root / "matrix.yaml").write_text(json.dumps(document))
    names = [f"cpu-{name}" for name in "abcd"]
    stopped = project.greenlane("run", *names)
    assert stopped.returncode == 1
    assert stopped.stdout.count("not begun: an earlier lane is red") == 3
    whole = project.greenlane("run", *names, "--jobs", "2", "--keep-going")
    assert whole.returncode == 1
    assert whole.stdout.count("build fail") == 4


def test_two_greenlanes_dont_share_a_lane(project: Project) -> None:
    project.write(stages={**STAGES, "test": "touch {artifacts}/began; sleep 300"})
    first = subprocess.Popen(
        project.command("run", "cpu"), cwd=project.root, env=project.environment(), stdout=subprocess.DEVNULL
    )
    wait_for(lambda: (project.root / ".greenlane/lanes/cpu/artifacts/began").exists())
    done = project.greenlane("run", "cpu")
    first.terminate()
    first.wait()
    assert done.returncode == 3
    assert "is being run by another greenlane" in done.stdout + done.stderr


def test_an_unexplained_red_is_tried_on_the_base_in_the_same_job(project: Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.write(stages={**STAGES, "test": "cat {source}/fine"})
    project.commit()
    done = project.greenlane("run", "cpu", "--base", base)
    assert done.returncode == 1
    heads = {record["head"]: record["outcome"] for record in project.records()}
    assert heads[base] == "pass" and heads[project.git("rev-parse", "HEAD")] == "fail"
    count = len(project.records())
    project.greenlane("run", "cpu", "--base", base)
    assert len(project.records()) == count + 1, "the base's record was there already"


def test_merge_runs_on_the_merge_of_head_and_base(project: Project) -> None:
    first = project.git("rev-parse", "HEAD")
    (project.root / "theirs.cpp").write_text("int theirs;\n")
    base = project.commit("on the base")
    project.git("checkout", "-q", "-b", "change", first)
    project.write(stages={**STAGES, "test": "cat {source}/theirs.cpp {source}/mine.cpp"})
    (project.root / "mine.cpp").write_text("int mine;\n")
    head = project.commit("mine")
    done = project.greenlane("run", "cpu", "--base", base, "--merge")
    assert done.returncode == 0, done.stdout + done.stderr
    record = project.records()[-1]
    assert (record["head"], record["base"]) == (head, base)
    assert record["merge_tree"] == project.git("merge-tree", "--write-tree", base, head)
    assert project.git("worktree", "list").count("\n") == 0


def test_a_merge_that_conflicts_is_red_and_names_the_file(project: Project) -> None:
    first = project.git("rev-parse", "HEAD")
    (project.root / "a.cpp").write_text("int theirs;\n")
    base = project.commit("on the base")
    project.git("checkout", "-q", "-b", "change", first)
    (project.root / "a.cpp").write_text("int mine;\n")
    project.commit("mine")
    done = project.greenlane("run", "cpu", "--base", base, "--merge")
    assert done.returncode == 1
    assert "conflicts" in done.stderr and "a.cpp" in done.stderr


def test_a_folder_that_is_no_repository_is_run_and_called_dirty(project: Project, tmp_path: Path) -> None:
    plain = Project(tmp_path / "plain")
    plain.root.mkdir()
    plain.write()
    done = plain.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert plain.records()[-1]["dirty"] is True and plain.records()[-1]["head"] == "0" * 40


def test_github_gets_groups_and_an_annotation_that_a_log_cannot_forge(project: Project) -> None:
    hostile = "echo '::error::forged'; echo 'a.cpp:3:1: error: 100% wrong, really'; exit 1"
    project.write(stages={**STAGES, "build": hostile})
    done = project.greenlane("run", "cpu", GITHUB_ACTIONS="true")
    lines = done.stdout.splitlines()
    assert "::group::cpu build" in lines and "::endgroup::" in lines
    assert "::error file=a.cpp,line=3,title=cpu build::100%25 wrong, really" in lines
    assert "::error::forged" not in lines


def test_logs_are_shown_by_stage(project: Project) -> None:
    project.greenlane("run", "cpu")
    assert project.greenlane("logs", "cpu", "--stage", "configure").stdout == "$ echo configured\nconfigured\n"
    assert "== test ==" in project.greenlane("logs", "cpu").stdout
    missing = project.greenlane("logs", "cpu", "--stage", "bench")
    assert missing.returncode == 2 and "no log of bench" in missing.stderr


def test_a_record_is_reproduced_from_its_commit(project: Project) -> None:
    project.greenlane("run", "cpu")
    record = next((project.root / ".greenlane/ledger/records").rglob("*.json")).stem
    (project.root / "a.cpp").write_text("int another;\n")
    done = project.greenlane("reproduce", record[:12])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nreproduced" in done.stdout
    assert (project.root / "a.cpp").read_text() == "int another;\n"


def test_a_record_of_uncommitted_changes_cant_be_reproduced(project: Project) -> None:
    (project.root / "a.cpp").write_text("int another;\n")
    project.greenlane("run", "cpu")
    record = next((project.root / ".greenlane/ledger/records").rglob("*.json")).stem
    done = project.greenlane("reproduce", record[:12])
    assert done.returncode == 2 and "in no commit" in done.stderr


def test_bench_is_not_run_where_exact_is_not_green(project: Project) -> None:
    gates = {"bench": {"command": "echo {}", "metrics": {"speed": {"path": "speed", "direction": "higher"}}}}
    project.write(gates=gates)
    project.greenlane("run", "cpu")
    bench = project.stages()["bench"]
    assert bench["outcome"] == "not-run" and "exact gate is not green" in str(bench["reason"])


def test_a_change_cannot_loosen_what_judges_it(project: Project) -> None:
    base = project.git("rev-parse", "HEAD")
    project.write(require=["checked"], stages={"configure": "echo", "build": "true"})
    project.commit()
    assert project.greenlane("run", "cpu").returncode == 0
    done = project.greenlane("run", "cpu", "--base", base)
    assert done.returncode == 4 and "missing: tested" in done.stdout
    assert project.records()[-1]["require"] == ["checked", "built", "tested"]

"""The small parts of a lane's run: plan, placeholders, evidence, logs, caches."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from greenlane.errors import MatrixError
from greenlane.executors import Folders
from greenlane.lanes import evidence, hip_headers, lease, plan, untrusted
from greenlane.lanes.log import StageLog
from greenlane.lanes.placeholders import Placeholders
from greenlane.lanes.summary import LaneEnd, exit_code
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import Device, Digests, Outcome, Record, StageResult

INSIDE = Folders(*(Path(f"/greenlane/{name}") for name in "source build prefix artifacts env home tmp ccache".split()))


def lane(**more: object) -> Lane:
    return Lane(id="rocm-gfx1100", backend="rocm", arch="gfx1100", archs=("gfx1100",), **more)  # type: ignore[arg-type]


def result(stage: Stage, outcome: Outcome) -> StageResult:
    return StageResult(stage=stage, outcome=outcome)


def record(outcome: Outcome, proven: tuple[Evidence, ...] = (), require: tuple[Evidence, ...] = ()) -> Record:
    return Record(
        schema=1, lane="cpu", head="0" * 40, dirty=False, digests=Digests(matrix="m", lane="l", tree="t"),
        outcome=outcome, evidence=proven, require=require,
    )  # fmt: skip


def test_a_stage_without_commands_and_without_a_gate_does_not_exist() -> None:
    made = lane(stages={"build": ("make",)}, gates={"exact": {"x": 1}, "bench": None})
    assert plan.stages_of(made, "host") == (Stage.CHECK, Stage.BUILD, Stage.EXACT)
    assert plan.stages_of(made, "docker") == (Stage.CHECK, Stage.IMAGE, Stage.BUILD, Stage.EXACT)


def test_a_command_that_speaks_of_python_gets_an_environment_on_the_host() -> None:
    made = lane(stages={"test": ("{python} -m pytest",)})
    assert plan.stages_of(made, "host") == (Stage.CHECK, Stage.IMAGE, Stage.TEST)


def test_until_includes_the_stage_that_it_names() -> None:
    made = lane(stages={"configure": ("c",), "build": ("b",), "test": ("t",)})
    assert plan.stages_of(made, "host", Stage.BUILD) == (Stage.CHECK, Stage.CONFIGURE, Stage.BUILD)


def test_a_stage_that_needs_a_card_says_so_where_there_is_none() -> None:
    made = lane(device="amd")
    assert plan.why_not(made, Stage.BUILD, has_card=False) is None
    assert plan.why_not(made, Stage.EXACT, has_card=False) == "needs an amd card, and this machine has none"
    assert plan.why_not(lane(device="amd", emulate=True), Stage.EXACT, has_card=False) is None


def test_every_unknown_lane_is_named_with_the_nearest_known_one() -> None:
    with pytest.raises(MatrixError) as caught:
        plan.lanes_named([lane()], ["rocm-gfx110", "zzz"])
    assert len(caught.value.problems) == 2
    assert "did you mean rocm-gfx1100?" in caught.value.problems[0]


def test_placeholders_are_filled_and_the_shells_own_braces_stay() -> None:
    places = Placeholders(lane(defines={"A": "x y", "ARCHS": "{archs}"}), INSIDE, "python3", 4)
    filled = places.fill("cmake -S {source} -B {build} {cmake_defines} -j {jobs}; echo ${HOME} {a,b} {arch}")
    assert filled == (
        "cmake -S /greenlane/source -B /greenlane/build '-DA=x y' -DARCHS=gfx1100 -j 4; echo ${HOME} {a,b} gfx1100"
    )


def test_an_arch_placeholder_without_an_arch_is_a_mistake_of_the_matrix() -> None:
    with pytest.raises(MatrixError, match="no architecture"):
        Placeholders(Lane(id="cpu", backend="cpu"), INSIDE, "python3", 1).fill("run {arch}")


def test_red_and_unrun_stages_prove_nothing() -> None:
    results = [
        result(Stage.CHECK, Outcome.PASS),
        result(Stage.BUILD, Outcome.FAIL),
        result(Stage.TEST, Outcome.BLOCKED),
    ]
    assert evidence.evidence(lane(), results, None) == (Evidence.CHECKED,)


def test_an_emulated_run_is_never_more_than_emulated() -> None:
    results = [result(Stage.BUILD, Outcome.PASS), result(Stage.EXACT, Outcome.PASS)]
    proven = evidence.evidence(lane(device="amd", emulate=True), results, None)
    assert proven == (Evidence.BUILT, Evidence.EMULATED, Evidence.EXACT)


@pytest.mark.parametrize(
    ("arch", "expected"), [("gfx1100", Evidence.RAN_ON_TARGET), ("gfx1151", Evidence.RAN_ON_FAMILY)]
)
def test_a_sibling_card_never_counts_as_the_target(arch: str, expected: Evidence) -> None:
    card = Device(name="card", arch=arch, driver="6", executor="docker")
    assert evidence.where_it_ran(lane(device="amd"), card) is expected


def test_a_card_of_the_accelerated_arch_is_the_target() -> None:
    made = Lane(id="cuda-fat", backend="cuda", arch="fat", archs=("sm_80", "sm_90a"), device="nvidia")
    card = Device(name="H200", arch="sm_90", driver="6", executor="docker")
    assert evidence.where_it_ran(made, card) is Evidence.RAN_ON_TARGET


def test_code_of_another_processor_is_emulated() -> None:
    other = "arm64" if os.uname().machine == "x86_64" else "x86_64"
    made = Lane(id=f"cpu-{other}", backend="cpu", arch=other)
    assert evidence.where_it_ran(made, None) is Evidence.EMULATED


def test_a_red_lane_counts_more_than_one_that_could_not_run_and_that_more_than_missing_evidence() -> None:
    red = LaneEnd("a", record(Outcome.FAIL), "id")
    prevented = LaneEnd("b", prevented="no daemon")
    lacking = LaneEnd("c", record(Outcome.PASS, (), (Evidence.EXACT,)), "id")
    green = LaneEnd("d", record(Outcome.PASS, (Evidence.EXACT,), (Evidence.EXACT,)), "id")
    assert exit_code([green]) == 0
    assert exit_code([green, lacking]) == 4
    assert exit_code([lacking, prevented]) == 3
    assert exit_code([lacking, prevented, red]) == 1


def test_a_void_lane_is_red() -> None:
    assert exit_code([LaneEnd("a", record(Outcome.VOID), "id")]) == 1


def test_values_that_came_from_outside_are_masked_in_logs(tmp_path: Path) -> None:
    seen: list[str] = []
    log = StageLog(tmp_path / "build.log", secrets=["hunter2-token", "ab"], watch=seen.append)
    log.command("curl -H hunter2-token")
    log.line("ab hunter2-token")
    log.close()
    assert (tmp_path / "build.log").read_text() == "$ curl -H ***\nab ***\n"
    assert seen == ["$ curl -H ***", "ab ***"]
    assert log.lines() == ["ab ***"]


@pytest.mark.parametrize("make", ["link", "folder link", "fifo", "huge", "outside"])
def test_what_a_lane_leaves_is_read_as_a_strangers(tmp_path: Path, make: str) -> None:
    root, secret = tmp_path / "build", tmp_path / "secret"
    root.mkdir()
    secret.mkdir()
    (secret / "key").write_text("key")
    name = "key"
    if make == "link":
        (root / "key").symlink_to(secret / "key")
    elif make == "folder link":
        (root / "sub").symlink_to(secret)
        name = "sub/key"
    elif make == "fifo":
        os.mkfifo(root / "key")
    elif make == "huge":
        (root / "key").write_bytes(b"x" * 100)
    else:
        name = "../secret/key"
    assert untrusted.read_bytes(root, name, most=50) is None


def test_plain_files_of_a_lane_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("c")
    assert untrusted.read_text(tmp_path, "a/b") == "c"


def test_only_hip_objects_inside_the_build_tree_are_distrusted(tmp_path: Path) -> None:
    commands = [
        {"directory": "/greenlane/build", "command": "clang++-21 -x hip -c k.cu -o k.cu.o", "output": "k.cu.o"},
        {"directory": "/greenlane/build", "command": "g++ -c a.cpp -o a.o", "output": "a.o"},
        {"directory": "/greenlane/build", "command": "hipcc -c z.cu -o z.o", "output": "/greenlane/build/z.o"},
        {"directory": "/greenlane/build", "command": "hipcc -c x.cu -o ../../x.o", "output": "../../x.o"},
        {"directory": "/greenlane/build", "arguments": ["clang++", "--offload-arch=gfx942", "-c", "y.cu", "-o", "y.o"]},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
    assert [path.name for path in hip_headers.hip_objects(tmp_path, INSIDE.build)] == ["k.cu.o", "z.o", "y.o"]


def test_a_card_is_held_by_one_lane_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    card = lease.Card("amd", 0, "card", "gfx1100", "6")
    monkeypatch.setattr(lease, "cards", lambda vendor: [card])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    order: list[str] = []
    held, release = threading.Event(), threading.Event()

    def first() -> None:
        with lease.leased("amd", ("gfx1100",), threading.Event()):
            held.set()
            release.wait()
            order.append("first ends")

    thread = threading.Thread(target=first)
    thread.start()
    held.wait()
    threading.Timer(0.5, release.set).start()
    with lease.leased("amd", ("gfx1100",), threading.Event()) as got:
        order.append("second begins")
    thread.join()
    assert got == card
    assert order == ["first ends", "second begins"]


def test_the_target_card_is_preferred_to_a_sibling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    both = [lease.Card("amd", 0, "a", "gfx1151", "6"), lease.Card("amd", 1, "b", "gfx1100", "6")]
    monkeypatch.setattr(lease, "cards", lambda vendor: list(both))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with lease.leased("amd", ("gfx1100",), threading.Event()) as got:
        assert got is not None and got.index == 1


def test_a_lane_without_a_card_to_lease_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "cards", lambda vendor: [])
    with lease.leased("amd", (), threading.Event()) as got:
        assert got is None


def test_card_names_are_those_of_the_compiler() -> None:
    assert [lease.gfx_name(version) for version in (110000, 110501, 90010, 120001)] == [
        "gfx1100", "gfx1151", "gfx90a", "gfx1201",
    ]  # fmt: skip

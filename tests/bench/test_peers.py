"""The table of peers: interleaved rounds, best arms, a reason for who did not run, and its place in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.peers import __main__ as command
from bench.peers import arms, series, table
from bench.peers.arms import Arm, Sizes
from bench.peers.series import Measured

MACHINE = table.Machine("A processor", 2, 30e9, 100_000_000)


def printing(peer: str, name: str, prefill: float, decode: float, log: Path) -> Arm:
    answer = {"prefill_tokens_per_s": prefill, "decode_tokens_per_s": decode, "version": f"{peer} 1.0", "load_s": 0.2}
    script = f"open({str(log)!r}, 'a').write({peer + name!r} + '\\n'); print('log line'); print({json.dumps(answer)!r})"
    return Arm(peer, name, (sys.executable, "-c", script))


@pytest.fixture
def found(tmp_path: Path) -> list[Measured]:
    log = tmp_path / "log"
    some = [
        printing("engine", "", 1200, 300, log),
        printing("llama.cpp", "mmap", 300, 120, log),
        printing("llama.cpp", "huge pages", 290, 150, log),
        Arm("vLLM", "", (sys.executable, "-c", "raise ModuleNotFoundError(\"No module named 'vllm'\")")),
    ]
    return series.interleaved(some, 2, lambda line: None)


def test_every_second_round_runs_in_the_opposite_order(found: list[Measured], tmp_path: Path) -> None:
    forth = ["engine", "llama.cppmmap", "llama.cpphuge pages"]
    assert (tmp_path / "log").read_text().split("\n")[:-1] == forth + forth[::-1]


def test_the_best_arm_of_a_peer_is_the_one_that_decodes_fastest(found: list[Measured]) -> None:
    assert [m.arm.name for m in series.best_arms(found) if m.arm.peer == "llama.cpp"] == ["huge pages"]


def test_the_table_gives_versions_ratios_the_limit_and_who_did_not_run(found: list[Measured]) -> None:
    text = table.table(series.best_arms(found), MACHINE, 512, 128)
    assert "| engine | 1200 (±0%) | 300 (±0%) | 0.20 s |" in text
    assert "| llama.cpp (huge pages) | 290 (±0%) | 150 (±0%)" in text and "llama.cpp 1.0" in text
    assert "| vLLM | not run: ModuleNotFoundError: No module named 'vllm'" in text
    assert "4.14 times the prefill and 2.00 times the decode of llama.cpp" in text
    assert "no decode passes 300" in text


def test_a_ratio_is_the_median_over_rounds() -> None:
    ours, peer = (Measured(Arm(name, "", ())) for name in ("engine", "peer"))
    ours.runs = [{"d": 10.0}, {"d": 30.0}, {"d": 20.0}]
    peer.runs = [{"d": 10.0}, {"d": 10.0}, {"d": 10.0}]
    assert table.ratio(ours, peer, "d") == 2.0


def test_the_table_replaces_what_stands_between_the_marks(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(f"above\n{table.BEGIN}\nold\n{table.END}\nbelow\n")
    table.put("new\n", file)
    table.put("newer\n", file)
    assert file.read_text() == f"above\n{table.BEGIN}\n\nnewer\n\n{table.END}\nbelow\n"


def test_a_file_without_the_marks_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("no marks\n")
    with pytest.raises(SystemExit, match="put the lines"):
        table.put("new\n", file)
    assert file.read_text() == "no marks\n"


def test_every_arm_of_a_peer_has_the_same_sizes_and_threads() -> None:
    sizes = Sizes(prefill=64, decode=8, repeat=2, threads=3)
    for arm in (*arms.llama_cpp("python", Path("m"), sizes), *arms.hugging_face("python", Path("m"), sizes)):
        words = " ".join(arm.command)
        assert "--prefill 64 --decode 8 --repeat 2 --threads 3" in words
        assert Path(arm.command[1]).is_file()
    engine = " ".join(arms.engine(Path("m"), sizes, "python").command)
    assert "--prompt-tokens 64 --decode-tokens 8 --repeat 2 --threads 3" in engine


def test_without_a_compiler_the_limit_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert command.bandwidth(2) is None
    assert "could not be measured" in table.limit(table.Machine("A processor", 2, None, 1))

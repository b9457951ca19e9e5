"""The six steps of the story, each ending with the comment that a reviewer gets."""

from __future__ import annotations

from dataclasses import dataclass

from greenlane.matrix.model import Stage
from tests.story.telling import OR_HIP, Telling

CLAIMED = """\
## ROCm: keep the sampled tokens on the device

Ports the CUDA device mirror to HIP, so that the next step is launched before the sampled tokens reach the host.

- Builds clean on CUDA 13.x and ROCm 7.x.
- ON == OFF and token-identical on sm_90.
- Performance is a wash.

Row: PERF-CAMPAIGN-3

Closes #412
"""
CORRECTED = """\
## ROCm: keep the sampled tokens on the device

Ports the CUDA device mirror to HIP, so that the next step is launched before the sampled tokens reach the host.

- Builds clean on CUDA 13.x and ROCm 7.x.
- Token-exact on gfx1151.
- Token-exact on gfx1100.

Row: PORT-ROCM
Tested on: gfx1151

Closes #412
"""
KNOWN_ROCM = (
    '  - {{lane: "rocm-*", stage: reach, fingerprint: {}, owner: ada, since: 2026-10-01, expires: 2099-12-31}}\n'
)
KNOWN_TOOLS = (
    "  - {{lane: tools-static, stage: build, fingerprint: {}, owner: grace, since: 2026-10-01, expires: 2099-12-31}}\n"
)


@dataclass(frozen=True)
class Comment:
    code: int  # exit status of `greenlane review`
    text: str


def main_branch(told: Telling) -> None:
    """main: two lanes of the tools are red, one of them owned; the ROCm row is owned until it has its mirror."""
    told.begin()
    told.commit("start", "The engine on three backends")
    told.run("rocm-gfx1151", "tools-static", card="gfx1151", by="main")
    known = KNOWN_ROCM.format(told.fingerprint("rocm-gfx1151", Stage.REACH))
    known += KNOWN_TOOLS.format(told.fingerprint("tools-static", Stage.BUILD))
    told.matrix.write_text(f"{told.matrix.read_text()}\nknown_red:\n{known}")
    told.commit("base", "Own the reds of today")
    told.run(card="gfx1151", by="main")


def port(told: Telling) -> Comment:
    """The author measures an early head at home, then pushes another: nine of twelve parameters, a doubled guard,
    helpers that one lane does not use, and a platform that still says no."""
    told.branch("change", "main")
    told.lay("never-reached")
    told.commit("early", "Port the device mirror to HIP")
    told.run("cuda-sm_90", card="sm_90", by="author")
    told.lay("story")
    told.commit("port", "Share one wrapper between CUDA and HIP")
    told.run(card="gfx1151", merge=True)
    return Comment(*told.review(CLAIMED))


def half_fix(told: Telling) -> Comment:
    """Everything compiles; the author takes the known red out. But the platform still says no: dead code."""
    told.lay("never-reached")
    line = next(line for line in told.matrix.read_text().splitlines(keepends=True) if 'lane: "rocm-*"' in line)
    told.edit("matrix.yaml", line, "")
    told.commit("half", "Pass all twelve parameters; guard once")
    told.run(card="gfx1151", merge=True)
    return Comment(*told.review(CLAIMED))


def fix(told: Telling) -> Comment:
    """The capability is true. The reviewer's card is a gfx1151; the row wants a gfx1100."""
    told.lay()
    told.commit("fix", "The ROCm platform reads back asynchronously")
    told.run(card="gfx1151", merge=True)
    return Comment(*told.review(CORRECTED))


def main_moves(told: Telling) -> Comment:
    """A commit on main touches the very lines that the port touches."""
    told.branch("main")
    _skip_empty(told, "#if defined(PORT_CUDA)\n")
    told.commit("moved", "Skip a batch without requests")
    told.run(card="gfx1151", by="main")
    told.branch("change")
    return Comment(*told.review(CORRECTED))


def rebase(told: Telling) -> Comment:
    """The branch again on top of main, by force, as one commit."""
    matrix = told.matrix.read_text()
    told.branch("change", "main")
    told.lay()
    _skip_empty(told, f"#if defined(PORT_CUDA){OR_HIP}\n")
    told.matrix.write_text(matrix)
    told.commit("rebased", "Port the device mirror to HIP")
    told.run(card="gfx1151", merge=True)
    return Comment(*told.review(CORRECTED))


def target(told: Telling) -> Comment:
    """Somebody with a gfx1100 runs the one lane that nobody had proven."""
    told.run("rocm-gfx1100", card="gfx1100", merge=True)
    return Comment(*told.review(CORRECTED))


def _skip_empty(told: Telling, guard: str) -> None:
    head = "void Runner::fill_input_ids(Step& step, [[maybe_unused]] const std::vector<Request>& requests) {\n"
    told.edit("src/runner.cpp", head + guard, f"{head}  if (requests.empty()) return;\n{guard}")


STEPS = {
    "1-port": port,
    "2-half-fix": half_fix,
    "3-fix": fix,
    "4-main-moves": main_moves,
    "5-rebase": rebase,
    "6-target": target,
}

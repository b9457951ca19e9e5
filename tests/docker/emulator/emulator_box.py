"""A container with a ROCm toolchain in which HIP programs are compiled and emulated."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "emulator" / "samples"


@dataclass(frozen=True)
class Box:
    """A running container with the source tree at /src (read-only) and a writable /scratch."""

    name: str

    def run(self, *command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        variables = {
            "PYTHONPATH": "/src",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GREENLANE_EMULATOR_CACHE_DIR": "/scratch/cache",
            **(env or {}),
        }
        flags = [flag for name, value in variables.items() for flag in ("-e", f"{name}={value}")]
        return subprocess.run(
            ["docker", "exec", "-w", "/scratch", *flags, self.name, *command],
            capture_output=True,
            text=True,
            check=False,
        )

    def compile(self, sample: str, arch: str, *flags: str) -> str:
        """The path of the compiled sample."""
        source = sample if sample.startswith("/") else f"/src/tests/emulator/samples/{sample}"
        target = f"/scratch/{Path(sample).stem}.{arch}.{abs(hash(flags))}"
        options = ("-O3", "-gline-tables-only", "-w", *flags)
        done = self.run("hipcc", f"--offload-arch={arch}", *options, source, "-o", target)
        assert done.returncode == 0, done.stderr
        return target

    def emulate(
        self, arch: str, *command: str, sanitize: bool = False, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        options = ["--arch", arch, *(["--sanitize"] if sanitize else [])]
        return self.run("python3", "-m", "greenlane", "emulate", *options, "--", *command, env=env)

    def write(self, name: str, text: str) -> str:
        path = f"/scratch/{name}"
        subprocess.run(
            ["docker", "exec", "-i", self.name, "sh", "-c", f"cat > {path}"], input=text, text=True, check=True
        )
        return path

    def read(self, path: str) -> str:
        return self.run("cat", path).stdout

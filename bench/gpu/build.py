"""The compiled engine for a backend, built under build/ if asked."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def engine_core(backend: str | None) -> Any:
    if backend is not None:
        build, prefix = ROOT / "build" / backend, ROOT / "build" / f"{backend}-install"
        configure = ["cmake", "-S", ROOT / "csrc", "-B", build, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
        subprocess.run([*configure, f"-DENGINE_BACKENDS=cpu;{backend}"], check=True)
        subprocess.run(["cmake", "--build", build], check=True)
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True)
        sys.path.insert(0, str(prefix))
    return importlib.import_module("engine._core")

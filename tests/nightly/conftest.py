"""The nightly tier shares the emulator's container with the Docker tier."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docker" / "emulator"))

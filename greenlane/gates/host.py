"""Is this machine quiet and steady? What a bench run has to know of its host before it may believe a figure."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

LISTEN_S = 0.25
MAX_BUSY = 0.15  # of one core, by others, while nothing of ours runs
MAX_STEAL = 0.05  # of the time that the machine's cores wanted to run
MAX_CLOCK_SHIFT = 0.03  # between the arms' median clocks
ENOUGH = 4  # readings of each arm before their medians are compared
MAX_CLOCK_SPREAD = 0.15  # between the fastest and the slowest run
FAULTS = {"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"}


@dataclass(frozen=True)
class Reading:
    """The host around one run; None where the machine doesn't tell."""

    busy_before: float  # cores that others used while nothing of ours ran
    steal: float  # share of the time during the run
    mhz: float | None  # fastest core, right after the run
    throttled: int  # thermal throttle events since the machine started
    gpu_mhz: float | None = None
    gpu_faults: tuple[str, ...] = ()  # why the card holds its clock down
    gpu_others: int = 0  # other processes on the card


class Watch(Protocol):
    def before(self) -> None: ...

    def after(self) -> Reading: ...


class HostWatch:
    """Reads /proc, /sys and, for a lane with an NVIDIA card, nvidia-smi."""

    def __init__(self, device: str | None = None, listen_s: float = LISTEN_S) -> None:
        self.device = device
        self.listen_s = listen_s
        self.busy = 0.0
        self.others = 0
        self.start = cpu_times()

    def before(self) -> None:
        first = cpu_times()
        time.sleep(self.listen_s)
        self.start = cpu_times()
        self.busy = (self.start["busy"] - first["busy"]) / self.listen_s
        self.others = len(nvidia("compute-apps=pid")) if self.device == "nvidia" else 0

    def after(self) -> Reading:
        end = cpu_times()
        wanted = end["busy"] + end["steal"] - self.start["busy"] - self.start["steal"]
        steal = (end["steal"] - self.start["steal"]) / wanted if wanted > 0 else 0.0
        clock, faults = card() if self.device == "nvidia" else (None, ())
        return Reading(
            busy_before=self.busy,
            steal=steal,
            mhz=fastest_core(),
            throttled=throttle_events(),
            gpu_mhz=clock,
            gpu_faults=faults,
            gpu_others=self.others,
        )


def cpu_times(stat: Path = Path("/proc/stat")) -> Mapping[str, float]:
    """Seconds of all cores since the machine started."""
    user, nice, system, _, _, irq, soft, steal = (int(n) for n in stat.read_text().split("\n", 1)[0].split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return {"busy": (user + nice + system + irq + soft) / tick, "steal": steal / tick}


def fastest_core(root: Path = Path("/sys/devices/system/cpu")) -> float | None:
    clocks = [int(text) / 1000 for text in texts(root, "cpu[0-9]*/cpufreq/scaling_cur_freq")]
    return max(clocks) if clocks else None


def throttle_events(root: Path = Path("/sys/devices/system/cpu")) -> int:
    return sum(int(text) for text in texts(root, "cpu[0-9]*/thermal_throttle/core_throttle_count"))


def texts(root: Path, pattern: str) -> list[str]:
    found = []
    for path in root.glob(pattern):
        try:
            found.append(path.read_text().strip())
        except OSError:
            continue  # a core that is offline
    return [text for text in found if text.isdigit()]


def nvidia(query: str) -> list[str]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-{query}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def card() -> tuple[float | None, tuple[str, ...]]:
    """Clock of the card and the reasons for which it is held down; the first card is the leased one."""
    names = sorted(FAULTS)
    columns = ",".join(["clocks.sm", *(f"clocks_event_reasons.{name}" for name in names)])
    rows = nvidia(f"gpu={columns}")
    if not rows:
        return None, ()
    clock, *states = (cell.strip() for cell in rows[0].split(","))
    active = tuple(name for name, state in zip(names, states, strict=False) if state == "Active")
    return (float(clock) if clock.replace(".", "").isdigit() else None), active


def disturbance(reading: Reading) -> str | None:
    """Why this run can't be believed."""
    if reading.busy_before > MAX_BUSY:
        return f"contention: other processes used {reading.busy_before:.2f} cores before a run"
    if reading.steal > MAX_STEAL:
        return f"contention: the hypervisor took {reading.steal:.0%} of the time of a run"
    if reading.gpu_others:
        return f"contention: {reading.gpu_others} other processes hold the card"
    if reading.gpu_faults:
        return f"clock: the card is held down by {', '.join(reading.gpu_faults)}"
    return None


def unsteady(readings: Mapping[str, Sequence[Reading]]) -> str | None:
    """Why the arms can't be compared: `readings` by arm."""
    everything = [reading for arm in readings.values() for reading in arm]
    events = [reading.throttled for reading in everything]
    if events and max(events) > min(events):
        return f"clock: the processor was throttled {max(events) - min(events)} times during the series"
    for what in ("mhz", "gpu_mhz"):
        clocks = {arm: clocks_of(series, what) for arm, series in readings.items()}
        if all(clocks.values()) and clocks and (why := moved(clocks)):
            return f"{why} ({'card' if what == 'gpu_mhz' else 'processor'})"
    return None


def clocks_of(series: Sequence[Reading], what: str) -> list[float]:
    return [clock for reading in series if (clock := getattr(reading, what)) is not None]


def moved(clocks: Mapping[str, Sequence[float]]) -> str | None:
    everything = [clock for series in clocks.values() for clock in series]
    if max(everything) > min(everything) * (1 + MAX_CLOCK_SPREAD):
        return f"clock: it moved between {min(everything):.0f} and {max(everything):.0f} MHz"
    if min(len(series) for series in clocks.values()) < ENOUGH:
        return None
    middles = {arm: statistics.median(series) for arm, series in clocks.items()}
    if max(middles.values()) > min(middles.values()) * (1 + MAX_CLOCK_SHIFT):
        said = ", ".join(f"{arm} {clock:.0f} MHz" for arm, clock in middles.items())
        return f"clock: the arms ran at different clocks: {said}"
    return None


def to_json(reading: Reading) -> dict[str, Any]:
    return {key: value for key, value in asdict(reading).items() if value not in (None, (), 0)}

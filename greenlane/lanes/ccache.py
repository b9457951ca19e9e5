"""A compiler cache per toolchain and arch set, and its hits as this build saw them."""

from __future__ import annotations

from collections import Counter

from greenlane.lanes import untrusted
from greenlane.lanes.context import Context

STATISTICS = ".ccache-events"
HITS = ("direct_cache_hit", "preprocessed_cache_hit")
MISS = "cache_miss"


def environment(context: Context) -> dict[str, str]:
    """Settings under which ccache neither misses by path nor hits falsely.

    The compiler counts by the image's files: `nvcc` and `hipcc` are drivers, and hashing them would overlook a changed
    ptxas, cicc or clang. Outside of an image ccache hashes the compiler's own bytes.
    """
    compiler = f"string:{context.image_files}" if context.image_files else "content"
    (context.host.build / STATISTICS).unlink(missing_ok=True)
    return {
        "CCACHE_DIR": str(context.executor.inside.ccache),
        "CCACHE_COMPILERCHECK": compiler,
        "CCACHE_BASEDIR": str(context.executor.inside.source.parent),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_STATSLOG": str(context.executor.inside.build / STATISTICS),
        # ccache doesn't hash what these add to a command line.
        "NVCC_APPEND_FLAGS": "",
        "HIPCC_COMPILE_FLAGS_APPEND": "",
    }


def statistics(context: Context) -> dict[str, float | int]:
    """Hits, misses and hit rate of this build; empty where no compiler ran through ccache."""
    lines = (untrusted.read_text(context.host.build, STATISTICS) or "").splitlines()
    events = Counter(line for line in lines if not line.startswith("#"))
    hits, misses = sum(events[name] for name in HITS), events[MISS]
    if not hits + misses:
        return {}
    return {"hits": hits, "misses": misses, "hit_rate": round(hits / (hits + misses), 4)}

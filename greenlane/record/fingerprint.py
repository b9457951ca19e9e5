"""The identity of an error: its first line without what differs from run to run."""

from __future__ import annotations

import hashlib
import re

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

# What differs between two runs of the same failure, and what is put in its place. Order matters: a time stamp is found
# before a line number, a path before the hash that may be one of its folders.
VARYING = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "<time>"),
        (r"\b0x[0-9a-f]+\b", "<address>"),
        (r"(?<![\w.])(?:[A-Za-z]:)?(?:\.{0,2}[\\/])(?:[\w.+@~-]+[\\/])*([\w.+@~-]+)", r"\1"),
        (r"\b(?:[\w.+@~-]+/)+([\w+@~-]+\.\w+)", r"\1"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<hash>"),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", "<hash>"),
        (r"\b\d+(\.\d+)?\s?(ns|us|µs|ms|s|sec|secs|seconds|min|minutes)\b", "<duration>"),
        (r"(?<=[\w>])[:(]\d+([:,]\d+)?\)?(?=\W|$)", ""),
        (r"\bline \d+\b", "line"),
        (r"\b(pid|process|thread|shard|attempt|job)[ =#:]*\d+(/\d+)?", r"\1"),
        (r"\b(tmp|temp)[\w.-]*\d[\w.-]*", "<tmp>"),
    )
)

# Words that say only that something went wrong. A message made of these alone identifies nothing.
GENERIC = frozenset(
    "a address all an and any at be been build but by canceled cancelled cmake code command completed compilation "
    "compiler core could due dumped duration error errors exit exited exiting fail failed failing failure failures "
    "fatal for from got had has hash have in is it job killed line make makefile more ninja no non not of on one "
    "operation or process received recipe result return returned run running runtime see signal stage status step "
    "stop stopped subcommand target terminated test tests that the this time tmp to unknown was were with zero".split()
)


def normalised(message: str) -> str:
    """The message without colours, folders, line numbers, addresses, hashes, times and durations.

    >>> normalised("/build/a1/csrc/attn.cpp:12:3: error: expected 12 arguments, have 9")
    'attn.cpp: error: expected 12 arguments, have 9'
    """
    text = ANSI.sub("", message)
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def is_specific(text: str) -> bool:
    """Whether a normalised message holds at least one token that says what went wrong.

    >>> is_specific("error: process completed with exit code 1")
    False
    >>> is_specific("undefined reference to `device_combine'")
    True
    """
    return any(word not in GENERIC and len(word) > 1 for word in re.findall(r"[a-z_]\w*", text.lower()))


def fingerprint(message: str, *, rule: str | None = None, target: str | None = None) -> str:
    """Sixteen hex digits that stay the same while the failure does, or "" for a message that identifies nothing.

    `rule` is the check, compiler or tool that spoke; `target` the object, test or kernel that it spoke of.
    """
    text = normalised(message)
    if not is_specific(text):
        return ""
    parts = "\0".join((rule or "", normalised(target or ""), text))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]

"""The first error of a log, with file and line: what a reader would scroll for."""

# ruff: noqa: E501  (a pattern reads best on one line)

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from greenlane.matrix.model import Stage
from greenlane.record.fingerprint import ANSI, fingerprint, is_specific, normalised
from greenlane.record.model import FirstError

LONGEST = 500  # characters of a message


@dataclass(frozen=True, slots=True)
class Pattern:
    """One tool's way to say that something is wrong. Named groups: file, line, message, rule, target."""

    tool: str
    regex: re.Pattern[str]
    lookahead: Callable[[Sequence[str], int, re.Match[str]], dict[str, str]] | None = None


def first_error(lines: Sequence[str], stage: Stage, source: str = "", build: str = "") -> FirstError | None:
    """The earliest line that a tool of this stage means as an error; the last words of the log when none does."""
    clean = [ANSI.sub("", line) for line in lines]
    for group in _order(stage):
        for index, line in enumerate(clean):
            for pattern in group:
                match = pattern.regex.search(line)
                if match and not _NOISE.search(line):
                    return _error(pattern, clean, index, match, (source, build))
    return _last_words(clean)


def _error(
    pattern: Pattern, lines: Sequence[str], index: int, match: re.Match[str], roots: tuple[str, str]
) -> FirstError:
    found = {key: value for key, value in match.groupdict().items() if value}
    if pattern.lookahead is not None:
        found |= pattern.lookahead(lines, index, match)
    message = found.get("message", lines[index]).strip()[:LONGEST]
    rule = found.get("rule") or _warning_option(message) or pattern.tool
    return FirstError(
        message=message,
        fingerprint=fingerprint(message, rule=rule, target=found.get("target")),
        file=_relative(found.get("file"), roots),
        line=int(found["line"]) if found.get("line") else None,
        rule=rule,
        target=found.get("target"),
        raw=lines[index].strip()[:LONGEST],
    )


def _last_words(lines: Sequence[str]) -> FirstError | None:
    """A log in which no tool is recognised: its last line that says something of its own."""
    for line in reversed(lines):
        if is_specific(normalised(line)):
            message = line.strip()[:LONGEST]
            return FirstError(message=message, fingerprint=fingerprint(message), raw=message)
    return None


def _warning_option(message: str) -> str | None:
    match = re.search(r"\[-W(?:error[=,]\s*)?(?:-W)?([\w+=-]+)\]\s*$", message)
    return f"-W{match[1]}" if match else None


def _relative(file: str | None, roots: Iterable[str]) -> str | None:
    """Relative to the source or build folder, as the repository names it."""
    if file is None:
        return None
    for root in roots:
        if root and file.startswith(root.rstrip("/") + "/"):
            return file[len(root.rstrip("/")) + 1 :]
    return re.sub(r"^(?:\.\./)+", "", file.removeprefix("./"))


def _cmake_message(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    """CMake writes its message on the lines that follow, indented, up to a blank pair."""
    said: list[str] = []
    for line in lines[index + 1 : index + 12]:
        if line.strip():
            said.append(line.strip())
        elif said:
            break
    return {"message": " ".join(said)} if said else {}


def _lld_reference(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    for line in lines[index + 1 : index + 4]:
        if place := re.search(r">>> (?:referenced|defined) (?:by|at|in) (?P<file>[\w./+-]+?):(?P<line>\d+)", line):
            return {key: value for key, value in place.groupdict().items() if value}
        if place := re.search(r">>> (?:referenced by|defined at|defined in) (?P<file>[\w./+-]+\.\w+)", line):
            return {"file": place["file"]}
    return {}


def _sanitizer_frame(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    """The first frame that has a source line: frames of the runtime have none, or end in its own files."""
    for line in lines[index + 1 : index + 40]:
        frame = re.search(r"#\d+ 0x[0-9a-f]+ in (?P<target>.+?) (?P<file>/?[\w./+@-]+\.\w+):(?P<line>\d+)", line)
        frame = frame or re.search(r"#\d+ (?P<target>.+?) (?P<file>/?[\w./+@-]+\.\w+):(?P<line>\d+)", line)
        if frame and not re.search(r"sanitizer|/usr/include|libsanitizer|/c\+\+/\d+", frame["file"]):
            return {key: value for key, value in frame.groupdict().items() if value}
    return {}


def _pytest_place(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    """pytest names the failing line above its summary, as `file:line: Error`."""
    file = match["file"]
    for line in reversed(lines[:index]):
        if place := re.match(rf"(?:.*/)?{re.escape(file)}:(\d+): ", line):
            return {"line": place[1]}
    return {}


def _traceback_place(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    """The last frame before the exception's own line."""
    for line in reversed(lines[max(0, index - 40) : index]):
        if place := re.search(r'File "(?P<file>[^"]+)", line (?P<line>\d+)', line):
            return place.groupdict()
    return {}


def _ctest_target(lines: Sequence[str], index: int, match: re.Match[str]) -> dict[str, str]:
    return {"message": f"test {match['target']} {match['how'].strip().lower()}"}


def _pattern(tool: str, regex: str, lookahead: Callable[..., dict[str, str]] | None = None) -> Pattern:
    return Pattern(tool, re.compile(regex), lookahead)


_FILE = r"(?P<file>(?:[A-Za-z]:)?[^\s:()\"'<>][^:()\"<>]*?\.\w+)"
_NOISE = re.compile(
    r"0 errors? generated|errors? generated\b|error\(s\) detected|all warnings being treated as errors|-- Performing Test"
)

_COMPILERS = (
    _pattern("compiler", rf"^{_FILE}:(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.+)$"),
    _pattern(
        "nvcc",
        rf"^{_FILE}\((?P<line>\d+)\)\s?: (?:catastrophic |fatal )?error(?: #?(?P<rule>[\w-]+))?: (?P<message>.+)$",
    ),
    _pattern("ptxas", r"^ptxas (?:(?P<file>\S+), line (?P<line>\d+); )?(?:error|fatal)\s*: (?P<message>.+)$"),
    _pattern("nvcc", r"^(?:nvcc|nvlink|fatbinary|cicc|cudafe\+\+) (?:error|fatal)\s*: (?P<message>.+)$"),
    _pattern("assembler", rf"^{_FILE}:(?P<line>\d+): Error: (?P<message>.+)$"),
    _pattern(
        "compiler",
        r"^(?:\S*/)?(?:clang(?:\+\+)?(?:-\d+)?|hipcc|g\+\+(?:-\d+)?|gcc(?:-\d+)?|c\+\+|cc|cc1plus|cc1): (?:fatal )?error: (?P<message>(?!linker command failed|ld returned|.* command failed with).+)$",
    ),
    _pattern("compiler", r"^(?:fatal )?error: (?P<message>(?!command .* failed|subprocess|metadata-gen).+)$"),
    _pattern("compiler", r"(?P<message>internal compiler error: .+)$"),
)
_LINKERS = (
    _pattern(
        "lld",
        r"^(?:\S*/)?(?:ld\.lld|lld|ld64\.lld)(?:-\d+)?: error: (?P<message>(?:undefined (?:hidden |protected )?symbol|duplicate symbol): (?P<target>.+?))$",
        _lld_reference,
    ),
    _pattern("lld", r"^(?:\S*/)?(?:ld\.lld|lld)(?:-\d+)?: error: (?P<message>.+)$", _lld_reference),
    _pattern(
        "ld",
        rf"^(?:\S*/ld(?:\.\w+)?: )?(?:\S+\.(?:o|a|so)(?:\(\S+\))?: )?{_FILE}:(?P<line>\d+): (?P<message>(?:undefined reference to|multiple definition of) [`'](?P<target>[^']+)'.*)$",
    ),
    _pattern(
        "ld",
        rf"^(?:\S*/ld(?:\.\w+)?: )?(?:\S+\.(?:o|a)\S*: )?{_FILE}:\(\S+\): (?P<message>(?:undefined reference to|multiple definition of) [`'](?P<target>[^']+)'.*)$",
    ),
    _pattern("ld", r"(?P<message>(?:undefined reference to|multiple definition of) [`'](?P<target>[^']+)'.*)$"),
    _pattern(
        "ld",
        r"^(?:\S*/)?ld(?:\.\w+)?: (?P<message>(?:cannot find|cannot open|unrecognized|final link failed|\S+: file not recognized|.*relocation).+)$",
    ),
)
_CMAKE = (
    _pattern(
        "cmake", rf"^CMake Error at {_FILE}:(?P<line>\d+) \((?P<target>\w+)\):\s*(?P<message>.*)$", _cmake_message
    ),
    _pattern("cmake", rf"^CMake Error (?:in|at) {_FILE}:\s*$", _cmake_message),
    _pattern("cmake", r"^CMake Error: (?P<message>.+)$"),
    _pattern("ninja", r"^ninja: (?:error|fatal): (?P<message>.+)$"),
)
_SANITIZERS = (
    _pattern("ubsan", rf"^{_FILE}:(?P<line>\d+):\d+: runtime error: (?P<message>.+)$"),
    _pattern(
        "sanitizer",
        r"(?:==\d+==\s?)?ERROR: (?P<rule>\w+Sanitizer): (?P<message>[\w-]+(?: [a-z][\w-]*)*)",
        _sanitizer_frame,
    ),
    _pattern("sanitizer", r"WARNING: (?P<rule>(?:Thread|Memory)Sanitizer): (?P<message>[\w -]+)", _sanitizer_frame),
)
_TESTS = (
    _pattern(
        "pytest",
        r"^(?:FAILED|ERROR) (?P<target>(?P<file>[\w./-]+\.py)(?:::\S+?(?:\[.*?\])?)?)(?: - (?P<message>.+))?$",
        _pytest_place,
    ),
    _pattern("gtest", rf"^{_FILE}:(?P<line>\d+): Failure(?P<message>.*)$"),
    _pattern(
        "ctest",
        r"^\s*\d+/\d+ Test\s+#\d+: (?P<target>\S+) \.*\s*\*\*\*(?P<how>Failed|Timeout|Not Run|Exception: \w+|\S+)",
        _ctest_target,
    ),
    _pattern(
        "ctest",
        r"^\s*\d+ - (?P<target>\S+) \((?P<how>Failed|Timeout|Not Run|SEGFAULT|Subprocess aborted|[\w ]+)\)",
        _ctest_target,
    ),
)
_PYTHON = (
    _pattern(
        "python", r"^(?P<message>(?P<rule>(?:\w+\.)*\w*(?:Error|Exception|Interrupt))(?:: .+)?)$", _traceback_place
    ),
    _pattern("pip", r"^(?:ERROR|error): (?P<message>.+)$"),
)
_SHELL = (
    _pattern(
        "shell",
        r"^(?:/bin/)?(?:sh|bash|dash): (?:\d+|line \d+): (?P<message>(?P<target>.+?): (?:not found|command not found|Permission denied|No such file or directory))$",
    ),
    _pattern("make", r"^make(?:\[\d+\])?: \*\*\* (?P<message>.+)$"),
    _pattern(
        "program",
        r"^(?P<target>[\w.-]+): (?:error: )?(?P<message>.*(?:error|cannot|failed|fatal|unknown|invalid|no such).*)$",
    ),
)


def _order(stage: Stage) -> tuple[tuple[Pattern, ...], ...]:
    """Groups by trust: the earliest match of a group wins over any of a later group."""
    building = (*_COMPILERS, *_LINKERS, *_CMAKE)
    if stage in (Stage.CONFIGURE, Stage.IMAGE):
        return ((*_CMAKE, *_COMPILERS, *_LINKERS), _PYTHON, _SHELL)
    if stage is Stage.BUILD:
        return (building, _SANITIZERS, _PYTHON, _SHELL)
    return (_SANITIZERS, _TESTS, building, _PYTHON, _SHELL)

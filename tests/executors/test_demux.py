"""The daemon's framing of two streams."""

from __future__ import annotations

import struct

from greenlane.executors import Stream
from greenlane.executors.exec import Demux


def frame(stream: int, text: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(text)) + text


def test_frames_are_told_apart_however_they_are_cut() -> None:
    wire = frame(1, b"out 1\nout ") + frame(2, b"err\n") + frame(1, b"2\n") + frame(1, b"last")
    for step in (1, 3, 7, len(wire)):
        heard: list[tuple[Stream, str]] = []
        demux = Demux(lambda stream, line, heard=heard: heard.append((stream, line)))  # type: ignore[misc]
        for at in range(0, len(wire), step):
            demux.feed(wire[at : at + step])
        demux.end()
        assert heard == [(Stream.OUT, "out 1"), (Stream.ERR, "err"), (Stream.OUT, "out 2"), (Stream.OUT, "last")]


def test_an_unknown_stream_is_left_out() -> None:
    heard: list[str] = []
    demux = Demux(lambda stream, line: heard.append(line))
    demux.feed(frame(3, b"system\n") + frame(1, b"out\n"))
    assert heard == ["out"]

"""A streaming client of the completions API on asyncio alone, light enough to drive many requests from one core."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit


@dataclass
class Answer:
    """Times are in seconds since the request was sent."""

    status: int
    text: str = ""
    tokens: int = 0
    finish_reason: str | None = None
    error: str | None = None
    first_token_s: float | None = None
    token_times_s: list[float] = field(default_factory=list)
    duration_s: float = 0.0


class Client:
    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 600.0) -> None:
        self._parts: SplitResult = urlsplit(url if "://" in url else f"http://{url}")
        self._api_key = api_key
        self._timeout = timeout

    async def complete(self, body: Mapping[str, Any]) -> Answer:
        """POST /v1/completions with stream: true, read to its end."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._complete(body, started)
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            answer = Answer(0, error=f"{type(error).__name__}: {error}")
        answer.duration_s = time.perf_counter() - started
        return answer

    async def _complete(self, body: Mapping[str, Any], started: float) -> Answer:
        reader, writer = await asyncio.open_connection(self._parts.hostname, self._parts.port or 80, limit=1 << 20)
        try:
            writer.write(self._request("/v1/completions", json.dumps({**body, "stream": True}).encode()))
            await writer.drain()
            status, headers = await _head(reader)
            answer = Answer(status)
            if status != 200:
                answer.error = (await _whole(reader, headers)).decode("utf-8", "replace")[:500]
                return answer
            async for event in _events(reader, headers):
                _take(answer, event, time.perf_counter() - started)
            return answer
        finally:
            writer.close()

    def _request(self, path: str, body: bytes) -> bytes:
        key = f"Authorization: Bearer {self._api_key}\r\n" if self._api_key else ""
        prefix = self._parts.path.rstrip("/")
        return (
            f"POST {prefix}{path} HTTP/1.1\r\nHost: {self._parts.netloc}\r\nContent-Type: application/json\r\n{key}"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode() + body


def _take(answer: Answer, event: dict[str, Any], at: float) -> None:
    if "error" in event:
        answer.error = str(event["error"].get("message", event["error"]))
        return
    if event.get("usage"):
        answer.tokens = event["usage"]["completion_tokens"]
    for choice in event.get("choices", []):
        answer.text += choice["text"]
        if choice["text"]:
            answer.first_token_s = answer.first_token_s if answer.first_token_s is not None else at
            answer.token_times_s.append(at)
        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status = int((await reader.readuntil(b"\r\n")).split()[1])
    headers = {}
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return status, headers


async def _chunks(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        while block := await reader.read(1 << 16):
            yield block
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:size]


async def _whole(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    return b"".join([block async for block in _chunks(reader, headers)])


async def _events(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    rest = b""
    async for block in _chunks(reader, headers):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                yield json.loads(line[6:])

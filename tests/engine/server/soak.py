"""A crowd of clients, good, rude and broken; every greedy answer is compared with the same request alone."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.engine.server.memory import Watch, watching
from tests.engine.server.running import Running

PATIENCE = 1800.0  # seconds until a request counts as lost; a busy machine is slow, not wrong
WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or one had".split()
MALFORMED = [
    b"",
    b"{",
    b'{"prompt": 3}',
    b"\xff" * 50,
    b'{"prompt": "x", "max_tokens": -1}',
    b'{"prompt": "x", "bogus": 1}',
    b"[" * 3000,
]
# A client in a process of its own: sends four requests, reads a little, then waits to be killed.
DOOMED = """
import socket, sys, time
opened = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(4)]
for one in opened:
    one.sendall(sys.argv[3].encode())
opened[0].recv(10)
time.sleep(60)
"""


@dataclass
class Soak:
    server: Running
    clients: int = 64
    longest_prompt: int = 60  # words
    longest_output: int = 24  # tokens
    seed: int = 0
    distinct: int = 24
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def run(self, seconds: float) -> Watch:
        """A crowd for so long. Each of its clients asks for what was asked for alone before."""
        rng = random.Random(self.seed)
        bodies = [self._body(rng) for _ in range(self.distinct)]
        self.alone = [
            (body, self.server.post("/v1/completions", body)[1]["choices"][0]["token_ids"]) for body in bodies
        ]
        with watching(self.server) as watch:
            asyncio.run(self._crowd(seconds))
        self.server.wait_idle(300)
        return watch

    def fill(self, capacity: int) -> None:
        """Touch every block of the KV cache, so that what grows afterwards is no cache filling up."""
        rng = random.Random(self.seed)
        for _ in range(9):  # eighths, and one for the rests of their last blocks
            prompt = [rng.randrange(200) for _ in range(capacity // 8)]
            status, found = self.server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1})
            assert status == 200, found

    def terminate(self) -> Counter[str]:
        """SIGTERM while all clients are busy: each request is answered in full, told why not, or not taken at all."""
        ends: Counter[str] = Counter()
        asyncio.run(self._last_crowd(ends))
        assert self.server.process.wait(timeout=120) == 0
        return ends

    def _body(self, rng: random.Random) -> dict[str, Any]:
        prompt = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, self.longest_prompt)))
        count = rng.randint(1, self.longest_output)
        return {"prompt": prompt, "max_tokens": count, "temperature": 0, "ignore_eos": True, "return_token_ids": True}

    async def _crowd(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        kinds = {
            self._whole: 30,
            self._streamed: 30,
            self._slow: 8,
            self._gone: 15,
            self._malformed: 10,
            self._late: 5,
            self._sampled: 5,
            self._killed: 1,
        }

        async def client(number: int) -> None:
            rng = random.Random(self.seed * 1000 + number)
            while time.monotonic() < until:
                (kind,) = rng.choices(list(kinds), list(kinds.values()))
                await kind(rng)
                self.done[kind.__name__.strip("_")] += 1

        await asyncio.gather(*(client(number) for number in range(self.clients)))

    async def _last_crowd(self, ends: Counter[str]) -> None:
        async def client(number: int) -> None:
            rng = random.Random(number)
            while not (end := await self._until_the_end(rng)).startswith("not taken"):
                ends[end] += 1
            ends[end] += 1

        clients = [asyncio.create_task(client(number)) for number in range(self.clients)]
        await asyncio.sleep(3)
        self.server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*clients)

    async def _until_the_end(self, rng: random.Random) -> str:
        body, expected = rng.choice(self.alone)
        streamed = rng.random() < 0.5
        try:
            status, raw = await self._exchange(json.dumps({**body, "stream": streamed}).encode())
        except (OSError, EOFError):
            return "not taken"
        if status == 503:
            return "not taken, told"
        choices, last = _choices(raw) if streamed else ([json.loads(raw)["choices"][0]], "[DONE]")
        if last != "[DONE]" and "shutting down" in last:
            return "told"
        self._expect(last == "[DONE]" and _ids(choices) == expected, f"status {status}, other ids at the end")
        return "answered"

    async def _whole(self, rng: random.Random) -> None:
        body, expected = rng.choice(self.alone)
        status, raw = await self._exchange(json.dumps(body).encode())
        self._expect(status == 200, f"status {status}: {raw[:200]!r}")
        self._expect(json.loads(raw)["choices"][0]["token_ids"] == expected, f"other ids for {body}")

    async def _streamed(self, rng: random.Random, pause: float = 0.0) -> None:
        body, expected = rng.choice(self.alone)
        status, raw = await self._exchange(json.dumps({**body, "stream": True}).encode(), pause=pause)
        choices, last = _choices(raw)
        self._expect(status == 200 and last == "[DONE]", f"status {status}, ends with {last}")
        self._expect(_ids(choices) == expected, f"other ids streamed for {body}")
        self._expect(sum(choice["finish_reason"] is not None for choice in choices) == 1, "not exactly one end")

    async def _slow(self, rng: random.Random) -> None:
        await self._streamed(rng, pause=0.05)

    async def _sampled(self, rng: random.Random) -> None:
        body, _ = rng.choice(self.alone)
        status, raw = await self._exchange(json.dumps({**body, "temperature": 1, "n": 2}).encode())
        self._expect(status == 200 and len(json.loads(raw)["choices"]) == 2, f"status {status}")

    async def _late(self, rng: random.Random) -> None:
        body, _ = rng.choice(self.alone)
        status, _ = await self._exchange(json.dumps({**body, "timeout": rng.uniform(0.001, 0.5)}).encode())
        self._expect(status in (200, 408), f"status {status} with a deadline")

    async def _malformed(self, rng: random.Random) -> None:
        status, raw = await self._exchange(rng.choice(MALFORMED))
        self._expect(status == 400 and b'"error"' in raw, f"status {status} for a malformed body")

    async def _gone(self, rng: random.Random) -> None:
        """Goes away before, while or after it is answered."""
        body, _ = rng.choice(self.alone)
        reader, writer = await self._send(json.dumps({**body, "stream": rng.random() < 0.5}).encode())
        await asyncio.sleep(rng.choice([0, 0, rng.uniform(0, 0.5)]))
        if rng.random() < 0.5:
            await reader.read(rng.randint(1, 400))
        writer.transport.abort()

    async def _killed(self, rng: random.Random) -> None:
        """kill -9 of a client that has four requests open."""
        parts = urlsplit(self.server.url)
        body = json.dumps({**rng.choice(self.alone)[0], "stream": True})
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        command = (sys.executable, "-S", "-c", DOOMED, str(parts.hostname), str(parts.port), head + body)
        process = await asyncio.create_subprocess_exec(*command)
        await asyncio.sleep(rng.uniform(0.1, 2))
        process.kill()
        await process.wait()

    async def _send(self, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.server.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(
            body
        )
        writer.write(head + body)
        await writer.drain()
        return reader, writer

    async def _exchange(self, body: bytes, *, pause: float = 0.0) -> tuple[int, bytes]:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await self._send(body)
            raw = b""
            while block := await reader.read(1 << 16 if not pause else 200):
                raw += block
                await asyncio.sleep(pause)
            writer.close()
        if not raw:
            raise EOFError("no answer")
        self._expect(raw.count(b"HTTP/1.1 ") == 1, f"{raw.count(b'HTTP/1.1 ')} answers to one request")
        head, _, content = raw.partition(b"\r\n\r\n")
        chunked = b"transfer-encoding: chunked" in head.lower()
        return int(head.split()[1]), _unchunk(content) if chunked else content

    def _expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.wrong.append(problem)


def _choices(raw: bytes) -> tuple[list[dict[str, Any]], str]:
    """The choices of a stream's events, and its last event."""
    events = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ")]
    told = [json.loads(event) for event in events if event != "[DONE]"]
    return [event["choices"][0] for event in told if event.get("choices")], events[-1] if events else ""


def _ids(choices: list[dict[str, Any]]) -> list[int]:
    return [token for choice in choices for token in choice["token_ids"]]


def _unchunk(content: bytes) -> bytes:
    whole = b""
    while content:
        size, _, content = content.partition(b"\r\n")
        whole, content = whole + content[: int(size, 16)], content[int(size, 16) + 2 :]
    return whole


def check_end(soak: Soak) -> None:
    """Nothing wrong, nothing left over, every kind of client seen."""
    assert soak.wrong == []
    assert set(soak.done) == {"whole", "streamed", "slow", "gone", "malformed", "late", "sampled", "killed"}
    assert soak.server.metric("engine_requests_open") == 0
    assert soak.server.metric("engine_kv_cache_usage_ratio") == 0
    assert soak.server.process.poll() is None and soak.server.get("/health")[0] == 200

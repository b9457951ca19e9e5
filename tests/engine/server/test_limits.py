"""What the server does when there is too much, too slow, too late or nobody left to answer."""

from __future__ import annotations

import concurrent.futures
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.server.running import Running, serving

LONG = {"prompt": "hello", "max_tokens": 3000, "temperature": 0, "ignore_eos": True}
SHORT = {"prompt": "hello", "max_tokens": 4, "temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def narrow(tiny_model: Path) -> Iterator[Running]:
    """One sequence at a time, one waiting."""
    arguments = ("--max-num-seqs", "1", "--max-queue", "1", "--kv-cache-tokens", "4096", "--threads", "1")
    with serving(tiny_model, *arguments, "--max-body-mb", "0.01") as running:
        yield running


def start(server: Running, body: dict[str, object]) -> socket.socket:
    """Send a request and don't read the answer."""
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    raw = json.dumps(body).encode()
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
    return connection


def test_a_full_queue_answers_429_with_retry_after(narrow: Running) -> None:
    busy = [start(narrow, LONG) for _ in range(2)]
    while narrow.metric("engine_requests_open") < 2:
        time.sleep(0.01)
    status, answer, headers = narrow.request("POST", "/v1/completions", SHORT)
    assert status == 429 and answer["error"]["code"] == "queue_full"
    assert int(next(value for name, value in headers.items() if name.lower() == "retry-after")) >= 1
    assert narrow.get("/health")[0] == 200
    for connection in busy:
        connection.close()
    narrow.wait_idle()
    assert narrow.post("/v1/completions", SHORT)[0] == 200


def test_a_client_that_goes_away_frees_its_place(narrow: Running) -> None:
    for stream in (False, True):
        connection = start(narrow, {**LONG, "stream": stream})
        while narrow.metric("engine_sequences_running") < 1:
            time.sleep(0.01)
        before = narrow.metric("engine_output_tokens_total")
        connection.close()
        narrow.wait_idle()
        assert narrow.metric("engine_output_tokens_total") - before < 3000
        assert narrow.metric("engine_kv_cache_usage_ratio") == 0


def test_a_waiting_request_of_a_gone_client_is_never_run(narrow: Running) -> None:
    first = start(narrow, LONG)
    while narrow.metric("engine_sequences_running") < 1:
        time.sleep(0.01)
    second = start(narrow, SHORT)
    while narrow.metric("engine_sequences_waiting") < 1:
        time.sleep(0.01)
    second.close()
    while narrow.metric("engine_sequences_waiting") > 0:
        time.sleep(0.01)
    assert narrow.metric("engine_sequences_running") == 1
    first.close()
    narrow.wait_idle()


def test_a_deadline_ends_a_request_with_408(narrow: Running) -> None:
    status, answer = narrow.post("/v1/completions", {**LONG, "timeout": 0.05})
    assert status == 408 and answer["error"]["code"] == "deadline_exceeded"
    status, events = narrow.post("/v1/completions", {**LONG, "timeout": 0.05, "stream": True})
    assert status == 200 and "deadline_exceeded" in events and "[DONE]" not in events


def test_a_large_body_is_refused(narrow: Running) -> None:
    assert narrow.post("/v1/completions", {"prompt": "x" * 20_000})[0] == 413
    connection = narrow.connect()
    connection.request("POST", "/v1/completions", iter([b"x" * 6000] * 3), {}, encode_chunked=True)
    assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"prompt": "a", "prompt": ',
        b"\xff\xfe",
        b'{"prompt": "\\ud800"}',
        b'{"prompt": ' + b"[" * 5000,
        b'{"prompt": "a", "temperature": NaN}',
        b'{"prompt": "a", "max_tokens": 1e400}',
        b'{"prompt": [1, "a"]}',
        b'{"prompt": {}}',
    ],
)
def test_a_malformed_body_is_refused_in_one_line(narrow: Running, raw: bytes) -> None:
    status, answer, _ = narrow.request("POST", "/v1/completions", raw)
    assert status == 400 and answer["error"]["message"] and "\n" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/completions", 405), ("GET", "/nothing", 404), ("DELETE", "/health", 405)],
)
def test_wrong_paths_and_methods_have_json_errors(narrow: Running, method: str, path: str, status: int) -> None:
    assert narrow.request(method, path)[0] == status and "error" in narrow.request(method, path)[1]


def test_metrics_tell_what_happens(narrow: Running) -> None:
    narrow.post("/v1/completions", {**SHORT, "prompt": "abcdefghijklmnopqrstuvwxyz"})
    narrow.post("/v1/completions", {**SHORT, "prompt": "abcdefghijklmnopqrstuvwxyz"})
    _, text = narrow.get("/metrics")
    for name in (
        "engine_time_to_first_token_seconds_count",
        "engine_inter_token_seconds_count",
        "engine_preemptions_total",
        "engine_sequences_running",
        "engine_sequences_waiting",
        "engine_kv_cache_usage_ratio",
        "engine_prompt_tokens_total",
        'engine_kernel_launches_total{kernel="',
        "engine_requests_rejected_total",
        'engine_requests_finished_total{reason="length"}',
    ):
        assert f"\n{name}" in text, name
    assert narrow.metric("engine_prefix_cache_hit_tokens_total") >= 16


def test_an_urgent_request_overtakes(narrow: Running, tiny_model: Path) -> None:
    with serving(tiny_model, "--max-num-seqs", "1", "--kv-cache-tokens", "4096", "--threads", "1") as server:
        ended: dict[str, float] = {}

        def ask(name: str, body: dict[str, object]) -> None:
            assert server.post("/v1/completions", body)[0] == 200
            ended[name] = time.monotonic()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(ask, "first", LONG)
            while server.metric("engine_sequences_running") < 1:
                time.sleep(0.01)
            pool.submit(ask, "patient", {**SHORT, "priority": 5, "max_tokens": 500})
            while server.metric("engine_sequences_waiting") < 1:
                time.sleep(0.01)
            pool.submit(ask, "urgent", {**SHORT, "priority": -5})
        assert ended["urgent"] < ended["patient"]


def test_an_api_key_is_asked_for_everywhere_but_for_health_and_metrics(tiny_model: Path) -> None:
    with serving(tiny_model, "--api-key", "secret", "--api-key", "other", "--kv-cache-tokens", "512") as server:
        assert server.post("/v1/completions", SHORT)[0] == 401
        assert server.post("/v1/completions", SHORT, authorization="Bearer wrong")[0] == 401
        assert server.post("/tokenize", {"prompt": "x"})[0] == 401 and server.get("/v1/models")[0] == 401
        for key in ("secret", "other"):
            assert server.post("/v1/completions", SHORT, authorization=f"Bearer {key}")[0] == 200
        assert server.get("/health")[0] == 200 and server.get("/metrics")[0] == 200


def test_sigterm_finishes_what_was_accepted_and_then_ends(tiny_model: Path) -> None:
    with serving(tiny_model, "--kv-cache-tokens", "16384", "--threads", "1", "--max-num-seqs", "3") as server:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = [pool.submit(server.post, "/v1/completions", {**LONG, "max_tokens": 800}) for _ in range(6)]
            while server.metric("engine_requests_open") < 6:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            for answer in answers:
                status, found = answer.result()
                assert status == 200 and found["usage"]["completion_tokens"] == 800
        assert server.process.wait(timeout=60) == 0


def test_what_can_not_finish_in_the_drain_time_gets_a_clear_error(tiny_model: Path) -> None:
    arguments = ("--kv-cache-tokens", "16384", "--max-num-seqs", "1", "--drain-timeout", "0.2", "--threads", "1")
    with serving(tiny_model, *arguments) as server:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(server.post, "/v1/completions", {**LONG, "stream": n % 2 == 0}) for n in range(4)]
            while server.metric("engine_requests_open") < 4:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            told = [answer.result() for answer in answers]
        assert server.process.wait(timeout=60) == 0
    for status, found in told:
        text = json.dumps(found)
        assert status == 503 or "shutting down" in text or "finish_reason" in text
    assert any("shutting down" in json.dumps(found) for _, found in told)


def test_a_slow_reader_is_dropped_and_others_go_on(tiny_model: Path) -> None:
    arguments = ("--kv-cache-tokens", "65536", "--write-timeout", "0.5", "--threads", "1")
    with serving(tiny_model, *arguments) as server:
        slow = start(server, {**LONG, "max_tokens": 4000, "n": 8, "stream": True, "logprobs": 20})
        status, _ = server.post("/v1/completions", SHORT)
        assert status == 200
        server.wait_idle(120)
        slow.close()


def test_a_killed_client_leaves_nothing_behind(server: Running) -> None:
    code = f"""
import urllib.request
body = {json.dumps({**LONG, "stream": True})!r}.encode()
reply = urllib.request.urlopen(urllib.request.Request("{server.url}/v1/completions", body))
print(reply.read(10), flush=True)
reply.read()
"""
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert client.stdout is not None and client.stdout.readline()
    client.kill()
    client.wait()
    server.wait_idle()
    assert server.metric("engine_kv_cache_usage_ratio") == 0
    assert server.post("/v1/completions", SHORT)[0] == 200


def test_an_occupied_port_is_one_clear_line(server: Running, tiny_model: Path) -> None:
    port = server.url.rsplit(":", 1)[1]
    command = [
        sys.executable,
        "-m",
        "engine",
        "serve",
        "--model",
        str(tiny_model),
        "--port",
        port,
        "--kv-cache-tokens",
        "64",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert ran.returncode == 2 and "can't listen" in ran.stderr and ran.stderr.count("\n") == 1

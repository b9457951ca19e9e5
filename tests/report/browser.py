"""A headless Chromium, spoken to by the DevTools protocol over a pipe: no driver and no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--mute-audio", "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip


def chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. `events` holds what the page did: console messages, exceptions, requests, CSP violations."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._rest = b""
        self._sent = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        made = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._sent:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            assert select.select([self._reads], [], [], max(0.0, until - time.monotonic()))[0], (
                "Chromium does not answer"
            )
            chunk = os.read(self._reads, 1 << 20)
            assert chunk, "Chromium has gone"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def open(self, path: Path, fragment: str = "", *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        named = [{"name": name, "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        until = time.monotonic() + PATIENCE_S
        while self.run("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < until, "the page does not load"
            time.sleep(0.02)
        self.run("1")  # events of the load lie before this answer

    def run(self, expression: str) -> Any:
        """The value of JavaScript in the page; the inspector's own evaluation is not under the page's CSP."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def becomes(self, expression: str, wanted: Any) -> bool:
        """Whether the value is, or soon becomes, the wanted one: what follows a key or a click may take a moment."""
        until = time.monotonic() + PATIENCE_S / 4
        while self.run(expression) != wanted:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def press(self, key: str) -> None:
        codes = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40, "Tab": 9, "/": 191}  # fmt: skip
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key[0].upper()))
        about: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "code": key}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and violations of the CSP."""
        self.run("1")
        found = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(about["exceptionDetails"].get("exception", {}).get("description", about)))
            elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(str(about["args"]))
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Everything that was asked for, but for the page itself and data in it."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [about["request"]["url"] for about in sent if about.get("type") != "Document"
                and not about["request"]["url"].startswith("data:")]  # fmt: skip


@contextmanager
def browser() -> Iterator[Browser]:
    program = chromium()
    assert program is not None
    to_it, our_writes = os.pipe()
    our_reads, from_it = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        child = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{to_it} 4>&{from_it}', program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_it, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        try:
            made = Browser(our_reads, our_writes)
            made.attach()
            yield made
        finally:
            child.terminate()
            child.wait(timeout=30)
            os.close(our_reads)
            os.close(our_writes)

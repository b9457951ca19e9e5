"""What happens to a request before any handler sees it: the API key and the size limit."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.server import problems

OPEN_PATHS = ("/health", "/metrics", "/openapi.json")


class TooLarge(Exception):
    """The body is longer than the server takes."""


class Guard:
    def __init__(self, app: ASGIApp, *, api_keys: Iterable[str], max_body_bytes: int) -> None:
        self._app = app
        self._keys = [key.encode() for key in api_keys]
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if self._keys and scope["path"] not in OPEN_PATHS and not self._known(headers.get(b"authorization", b"")):
            refusal = problems.answer(
                401, "the API key is missing or wrong", "invalid_request_error", "invalid_api_key"
            )
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
            return
        try:
            if _length(headers.get(b"content-length")) > self._max_body_bytes:
                raise TooLarge
            await self._app(scope, self._limited(receive), send)
        except TooLarge:
            message = f"the body is larger than the {self._max_body_bytes} bytes this server takes"
            await problems.answer(413, message, "invalid_request_error", "body_too_large")(scope, receive, send)

    def _known(self, authorization: bytes) -> bool:
        scheme, _, key = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and any(hmac.compare_digest(key.strip(), known) for known in self._keys)

    def _limited(self, receive: Receive) -> Receive:
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max_body_bytes:
                raise TooLarge
            return message

        return limited


def _length(header: bytes | None) -> int:
    return int(header) if header is not None and header.isdigit() else 0

"""The server's routes. `create` gives an ASGI application around a loaded model; start reading here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.errors import EngineError, RequestError
from engine.llm import LLM, Request
from engine.server import openapi, problems, protocol
from engine.server.answers import ChatShape, CompletionShape, Head, Shape, numbered
from engine.server.generation import Call
from engine.server.guard import Guard
from engine.server.metrics import Metrics
from engine.server.requests import Builder, as_messages
from engine.server.worker import Worker

BodyT = TypeVar("BodyT", bound=protocol.Body)
Result = TypeVar("Result")

# Threads that turn bodies into requests. Each one's share of the allocator's arenas and of the tokenizer's caches stays
# resident, tens of megabytes; more of them than cores gain nothing.
ENCODERS = 2


@dataclass(frozen=True, kw_only=True)
class Settings:
    model_name: str
    api_keys: Sequence[str] = ()
    max_queue: int = 256
    max_body_bytes: int = 8 << 20
    request_timeout: float = 600.0  # seconds
    write_timeout: float = 60.0  # seconds that a reader may take nothing


def create(llm: LLM, settings: Settings) -> Starlette:
    server = Server(llm, settings)
    routes = [
        Route("/v1/completions", server.completions, methods=["POST"]),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/models", server.models, methods=["GET"]),
        Route("/v1/models/{model:path}", server.model, methods=["GET"]),
        Route("/tokenize", server.tokenize, methods=["POST"]),
        Route("/detokenize", server.detokenize, methods=["POST"]),
        Route("/health", server.health, methods=["GET"]),
        Route("/metrics", server.metrics, methods=["GET"]),
        Route("/openapi.json", server.openapi, methods=["GET"]),
    ]
    guard = Middleware(Guard, api_keys=settings.api_keys, max_body_bytes=settings.max_body_bytes)
    handlers: Any = {EngineError: _engine_error, ValidationError: _validation_error, HTTPException: _http_error}
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=server.lifespan)
    app.state.server = server
    return app


class Server:
    def __init__(self, llm: LLM, settings: Settings) -> None:
        self.settings = settings
        self.llm = llm
        self.worker = Worker(llm, Metrics(), max_queue=settings.max_queue)
        self.worker.metrics.watch(llm, lambda: self.worker.num_open)
        self._builder = Builder(llm)
        self._encoders = anyio.CapacityLimiter(ENCODERS)
        self._started = int(time.time())

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        import asyncio

        self.worker.start(asyncio.get_running_loop())
        yield
        await anyio.to_thread.run_sync(self.worker.stop)

    async def _aside(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """On a thread, so that a long prompt doesn't hold up the others' tokens."""
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self._encoders)

    async def completions(self, http: HttpRequest) -> Response:
        body = await self._body(http, protocol.CompletionBody)
        if body.echo and body.logprobs is not None:
            raise RequestError("echo together with logprobs is not offered; leave one out")
        requests = await self._aside(self._builder.completions, body, _client(http))
        echoes = [self._echo(request) if body.echo else "" for _, request, _ in numbered(requests)]
        head = Head("cmpl", self.settings.model_name)
        with_logprobs = body.logprobs is not None
        shape = CompletionShape(head, self.llm.tokenizer, with_logprobs, body.return_token_ids, echoes)
        return await self._generate(http, body, requests, shape)

    async def chat(self, http: HttpRequest) -> Response:
        body = await self._body(http, protocol.ChatBody)
        requests = await self._aside(self._builder.chat, body, _client(http))
        head = Head("chatcmpl", self.settings.model_name)
        shape = ChatShape(head, self.llm.tokenizer, bool(body.logprobs), body.return_token_ids)
        return await self._generate(http, body, requests, shape)

    async def _generate(
        self, http: HttpRequest, body: protocol.Generation, requests: list[Request], shape: Shape
    ) -> Response:
        if body.stream_options is not None and not body.stream:
            raise RequestError("stream_options needs stream: true")
        timeout = min(body.timeout or self.settings.request_timeout, self.settings.request_timeout)
        call = Call(self.worker, requests, every_token=bool(body.stream), timeout=timeout)
        if not body.stream:
            return await call.answer(http, shape)
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return call.stream(http, shape, include_usage=with_usage, write_timeout=self.settings.write_timeout)

    def _echo(self, request: Request) -> str:
        return self.llm.tokenizer.decode(request.output.prompt_token_ids, keep_special=True)

    async def models(self, http: HttpRequest) -> Response:
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def model(self, http: HttpRequest) -> Response:
        self._check_model(http.path_params["model"])
        return JSONResponse(self._model())

    def _model(self) -> dict[str, Any]:
        return {
            "id": self.settings.model_name,
            "object": "model",
            "created": self._started,
            "owned_by": "engine",
            "max_model_len": self.llm.context_length,
        }

    async def tokenize(self, http: HttpRequest) -> Response:
        body = await self._body(http, protocol.TokenizeBody)
        if (body.prompt is None) == (body.messages is None):
            raise RequestError("send either prompt or messages")
        if body.prompt is not None:
            tokens = await self._aside(self.llm.tokenizer.encode, body.prompt)
        else:
            tokens = await self._aside(self.llm.encode_chat, as_messages(body.messages or []))
        return JSONResponse({"tokens": tokens, "count": len(tokens), "max_model_len": self.llm.context_length})

    async def detokenize(self, http: HttpRequest) -> Response:
        body = await self._body(http, protocol.DetokenizeBody)
        return JSONResponse({"prompt": self.llm.tokenizer.decode(body.tokens, keep_special=True)})

    async def health(self, http: HttpRequest) -> Response:
        if self.worker.failure is not None:
            return problems.answer(503, self.worker.failure, "server_error", "engine_failed")
        if self.worker.draining:
            return problems.answer(503, "the server is shutting down", "server_error", "shutting_down")
        return JSONResponse({"status": "ok", "open_requests": self.worker.num_open})

    async def metrics(self, http: HttpRequest) -> Response:
        return Response(self.worker.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, http: HttpRequest) -> Response:
        return JSONResponse(openapi.document())

    async def _body(self, http: HttpRequest, kind: type[BodyT]) -> BodyT:
        body = kind.model_validate_json(await http.body())
        self._check_model(getattr(body, "model", None))
        return body

    def _check_model(self, name: str | None) -> None:
        if name is not None and name != self.settings.model_name:
            message = f"model {name!r} is not served here; this server has {self.settings.model_name!r}"
            raise HTTPException(404, message)


def _client(http: HttpRequest) -> str | None:
    """Whose share a request counts against: the API key's, else the address's."""
    return http.headers.get("authorization") or (http.client.host if http.client else None)


async def _engine_error(http: HttpRequest, error: EngineError) -> Response:
    return problems.of_error(error)


async def _validation_error(http: HttpRequest, error: ValidationError) -> Response:
    return problems.of_validation(error)


async def _http_error(http: HttpRequest, error: HTTPException) -> Response:
    code = "model_not_found" if error.status_code == 404 and "model" in error.detail else None
    response = problems.answer(error.status_code, error.detail, "invalid_request_error", code)
    response.headers.update(error.headers or {})
    return response

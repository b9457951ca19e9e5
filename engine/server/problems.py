"""Errors as HTTP answers in OpenAI's shape."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.responses import JSONResponse

from engine.errors import DeviceFailed, EngineError, KVCacheTooSmall, RequestError, UnsupportedModel
from engine.sequence import FinishReason
from engine.server.worker import Busy, Draining

# Status and OpenAI's `type` and `code`.
BAD_REQUEST = (400, "invalid_request_error", None)
ANSWERS: list[tuple[type[EngineError], tuple[int, str, str | None]]] = [
    (Draining, (503, "server_error", "shutting_down")),
    (Busy, (429, "rate_limit_error", "queue_full")),
    (KVCacheTooSmall, (400, "invalid_request_error", "context_length_exceeded")),
    (RequestError, BAD_REQUEST),
    (UnsupportedModel, BAD_REQUEST),
    (DeviceFailed, (503, "server_error", "engine_failed")),
]
ENDINGS = {
    FinishReason.DEADLINE: (408, "timeout_error", "deadline_exceeded"),
    FinishReason.ERROR: (503, "server_error", "engine_failed"),
    FinishReason.ABORT: (499, "server_error", "aborted"),
}


def body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(status: int, message: str, kind: str, code: str | None = None, **extra: str | None) -> JSONResponse:
    return JSONResponse(body(message, kind, code, extra.get("param")), status)


def of_error(error: EngineError) -> JSONResponse:
    status, kind, code = next((a for known, a in ANSWERS if isinstance(error, known)), (500, "server_error", None))
    response = answer(status, str(error), kind, code)
    if isinstance(error, Busy):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def of_ending(reason: FinishReason, message: str | None) -> JSONResponse:
    status, kind, code = ENDINGS[reason]
    return answer(status, message or f"the request ended: {reason}", kind, code)


def of_validation(error: ValidationError) -> JSONResponse:
    """The first mistake, with where it is."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    location = errors[0]["loc"]
    # A value of several accepted forms gives one error per form, each with the form's name in its place.
    forms = {other["loc"][1] for other in errors if len(other["loc"]) > 1 and other["loc"][0] == location[0]}
    if len(forms) > 1 and not any(isinstance(form, int) for form in forms):
        where, problem = str(location[0]), "fits none of the accepted forms"
    else:
        where, problem = ".".join(str(part) for part in location), str(errors[0]["msg"])
    return answer(400, f"{where}: {problem}" if where else problem, "invalid_request_error", param=where or None)

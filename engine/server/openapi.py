"""The server's OpenAPI document, generated from the models that check the bodies."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from engine.server import protocol

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
REFUSALS = {
    400: "The request can't be served as asked",
    401: "The API key is missing or wrong",
    404: "Another model than the one served",
    408: "The deadline has passed",
    413: "The body is too large",
    429: "The queue is full; Retry-After says when to come again",
    503: "The engine failed, or the server is shutting down",
}
POSTS: dict[str, tuple[type[BaseModel], str, tuple[str, ...]]] = {
    "/v1/completions": (protocol.CompletionBody, "Continue a prompt", ("id", "object", "choices", "usage")),
    "/v1/chat/completions": (protocol.ChatBody, "Answer messages", ("id", "object", "choices", "usage")),
    "/tokenize": (protocol.TokenizeBody, "Token ids of a text or of messages", ("tokens", "count")),
    "/detokenize": (protocol.DetokenizeBody, "The text of token ids", ("prompt",)),
}
GETS = {
    "/v1/models": ("The model served", ("object", "data")),
    "/health": ("Whether requests are taken", ("status",)),
}


@cache
def document() -> dict[str, Any]:
    bodies = [body for body, _, _ in POSTS.values()]
    _, schemas = models_json_schema(
        [(body, "validation") for body in bodies], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {path: {"post": _post(*entry)} for path, entry in POSTS.items()}
    paths |= {path: {"get": _get(*entry)} for path, entry in GETS.items()}
    paths["/v1/models/{model}"] = {"get": _get("One model", ("id", "object")) | {"parameters": [_model_parameter()]}}
    paths["/metrics"] = {"get": {"summary": "Prometheus metrics", "responses": _responses({"text/plain": {}})}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "engine", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _post(body: type[BaseModel], summary: str, keys: tuple[str, ...]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}
    answers: dict[str, Any] = {"application/json": {"schema": _object(keys)}}
    if "stream" in body.model_fields:
        answers["text/event-stream"] = {}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": _responses(answers),
        "security": [{"key": []}, {}],
    }


def _get(summary: str, keys: tuple[str, ...]) -> dict[str, Any]:
    return {"summary": summary, "responses": _responses({"application/json": {"schema": _object(keys)}})}


def _model_parameter() -> dict[str, Any]:
    return {"name": "model", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _object(keys: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "required": list(keys)}


def _responses(content: dict[str, Any]) -> dict[str, Any]:
    refusal = {"application/json": {"schema": ERROR}}
    refusals = {str(status): {"description": text, "content": refusal} for status, text in REFUSALS.items()}
    return {"200": {"description": "Done", "content": content}, **refusals}

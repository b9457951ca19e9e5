"""Request bodies, checked. What this server can't honour is refused, never ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 10.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, StringConstraints(max_length=1 << 22)]
TokenId = Annotated[Whole, Field(ge=0, lt=1 << 31)]
MAX_MESSAGES = 2048


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StreamOptions(Body):
    include_usage: bool = False


class JsonSchema(Body):
    name: str = Field(default="answer", max_length=64)
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextFormat(Body):
    type: Literal["text"]


class JsonObjectFormat(Body):
    type: Literal["json_object"]


class JsonSchemaFormat(Body):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class RegexFormat(Body):
    """An extension: the whole answer matches the regular expression."""

    type: Literal["regex"]
    pattern: str = Field(min_length=1, max_length=1 << 14)


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat, Field(discriminator="type")]


class Generation(Body):
    """What completions and chat have in common. `priority`, `timeout`, `top_k`, `min_p`, `repetition_penalty`,
    `ignore_eos`, `stop_token_ids` and `return_token_ids` go beyond OpenAI's API."""

    model: str | None = Field(default=None, max_length=512)
    n: Whole = Field(default=1, ge=1, le=128)
    temperature: float | None = Field(default=None, ge=0, le=10000)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: Whole = Field(default=0, ge=0, lt=1 << 31)
    min_p: float = Field(default=0.0, ge=0, le=1)
    repetition_penalty: float = Field(default=1.0, gt=0, le=10000)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    seed: Whole | None = Field(default=None, ge=-(1 << 63), lt=1 << 64)
    stop: str | list[str] | None = None
    stop_token_ids: list[TokenId] = Field(default=[], max_length=64)
    ignore_eos: bool = False
    logit_bias: dict[str, float] | None = Field(default=None, max_length=1024)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    user: str | None = Field(default=None, max_length=512)
    metadata: dict[str, str] | None = None
    priority: Whole = Field(default=0, ge=-100, le=100)
    timeout: float | None = Field(default=None, gt=0, le=86400)
    return_token_ids: bool = False


class CompletionBody(Generation):
    prompt: Text | list[Text] | list[TokenId] | list[list[TokenId]]
    max_tokens: Whole | None = Field(default=16, ge=1, lt=1 << 31)
    logprobs: Whole | None = Field(default=None, ge=0, le=20)
    echo: bool | None = None
    suffix: None = None


class TextPart(Body):
    type: Literal["text"]
    text: Text


class Message(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[TextPart]
    name: str | None = Field(default=None, max_length=64)


class ChatBody(Generation):
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_tokens: Whole | None = Field(default=None, ge=1, lt=1 << 31)
    max_completion_tokens: Whole | None = Field(default=None, ge=1, lt=1 << 31)
    logprobs: bool | None = None
    top_logprobs: Whole | None = Field(default=None, ge=0, le=20)


class TokenizeBody(Body):
    """Either a text or messages."""

    model: str | None = Field(default=None, max_length=512)
    prompt: Text | None = None
    messages: list[Message] | None = Field(default=None, min_length=1, max_length=MAX_MESSAGES)


class DetokenizeBody(Body):
    model: str | None = Field(default=None, max_length=512)
    tokens: list[TokenId] = Field(max_length=1 << 20)

"""Chat templates come with the model file, so they are compiled and run as a stranger's code."""

from __future__ import annotations

import pytest

from engine.errors import RequestError, UnsupportedModel
from engine.tokenizer.chat_template import ChatTemplate

HELLO = [{"role": "user", "content": "hello"}]


def render(source: str) -> str:
    return ChatTemplate(source, {"bos_token": "<s>"}).render(HELLO)


def test_messages_and_special_tokens_are_filled_in() -> None:
    assert (
        render("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m['content'] }}{% endfor %}") == "<s>[user]hello"
    )


def test_block_tags_leave_no_blank_lines() -> None:
    assert (
        render("{% for m in messages %}\n  {% if true %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}\n") == "hello\n"
    )


def test_a_templates_own_refusal_is_a_request_error() -> None:
    with pytest.raises(RequestError, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ 'a' * 1000000000 }}",
        "{{ [0] * 1000000000 }}",
        "{{ 10 ** 1000000000 }}",
        "{{ '%999999999d' % 1 }}",
        "{% for i in range(1000000000) %}{% endfor %}",
        "{{ nothing.at.all }}",
        "{{ 1 / 0 }}",
    ],
)
def test_a_hostile_template_is_refused_in_one_line(source: str) -> None:
    with pytest.raises(RequestError, match="chat template refuses"):
        render(source)


def test_a_template_that_does_not_compile_is_named_as_such() -> None:
    with pytest.raises(UnsupportedModel, match="can't be compiled"):
        render("{% for %}")

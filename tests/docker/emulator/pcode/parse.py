"""The grammar of the pseudo-code: a text becomes nested tuples, the first element of each saying what it is."""

from __future__ import annotations

import re
from typing import Any

Node = tuple[Any, ...]
TOKEN = re.compile(
    r"\s*(?:(\d+'-?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)[A-Z]*)"  # 16'0.5 8'255U
    r"|(\d+'[A-Z]+)"  # 32'U
    r"|(0x[0-9a-fA-F]+[A-Z]*|\d+\.\d+F?|\d+[A-Z]*)"
    r"|([A-Za-z_]\w*)"
    r"|(\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+:|\+=|-=|[-+*/%&|^~!<>=?:;,.()\[\]{}]))"
)
LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"), ("**",),
)  # fmt: skip
ENDS = ("endif", "endfor", "else", "elsif")


class NotUnderstood(Exception):
    """A construct that this grammar lacks."""


def tokens(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*", "", text)
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotUnderstood(text[at : at + 30])
        found.append(match[0].strip())
        at = match.end()
    return found


def parse(text: str) -> list[Node]:
    reader = Reader(tokens(text))
    body = reader.block()
    if reader.at < len(reader.words):
        raise NotUnderstood(" ".join(reader.words[reader.at : reader.at + 6]))
    return body


class Reader:
    def __init__(self, words: list[str]) -> None:
        self.words, self.at = words, 0

    def peek(self, ahead: int = 0) -> str:
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def take(self, wanted: str | None = None) -> str:
        word = self.peek()
        if wanted is not None and word != wanted:
            raise NotUnderstood(f"{wanted} expected, {word} found")
        self.at += 1
        return word

    def took(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def block(self) -> list[Node]:
        body = []
        while self.peek() and self.peek() not in (*ENDS, ")"):
            if not self.took(";"):
                body.append(self.statement())
        return body

    def statement(self) -> Node:
        word = self.peek()
        if word == "if":
            return self.condition()
        if word == "for":
            return self.loop()
        if word in ("break", "return"):
            self.take()
            return ("break",) if word == "break" else ("return", self.expression())
        if word == "declare":
            return self.declaration()
        target = self.postfix()
        if self.peek() in ("+=", "-="):
            operator = self.take()[0]
            return ("set", target, ("binary", operator, target, self.expression()))
        if self.took("="):
            return ("set", target, self.function() if self.peek() == "lambda" else self.expression())
        return ("do", target)

    def declaration(self) -> Node:
        self.take("declare")
        name = self.take()
        self.take(":")
        kind = self.take()
        if self.took("["):
            self.take()
            self.take("]")
            return ("declare", name, kind, True)
        return ("declare", name, kind, False)

    def condition(self) -> Node:
        self.take()
        test = self.expression()
        self.take("then")
        yes = self.block()
        if self.peek() == "elsif":
            return ("if", test, yes, [self.condition()])
        no = self.block() if self.took("else") else []
        self.take("endif")
        return ("if", test, yes, no)

    def loop(self) -> Node:
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.expression()
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.block()
        self.take("endfor")
        return ("for", name, first, last, body)

    def function(self) -> Node:
        self.take("lambda")
        self.take("(")
        names = [self.take()]
        while self.took(","):
            names.append(self.take())
        self.take(")")
        self.take("(")
        start = self.at
        try:
            body = [("return", self.expression())]
            self.take(")")
        except NotUnderstood:
            self.at = start
            body = self.block()
            self.take(")")
        return ("lambda", names, body)

    def expression(self) -> Node:
        test = self.binary(0)
        if not self.took("?"):
            return test
        yes = self.expression()
        self.take(":")
        return ("choose", test, yes, self.expression())

    def binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            operator = self.take()
            left = ("binary", operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        if self.peek() in ("-", "+", "!", "~"):
            return ("unary", self.take(), self.unary())
        return self.postfix()

    def postfix(self) -> Node:
        found = self.primary()
        while self.peek() in (".", "["):
            if self.took("."):
                found = ("as", found, self.take())
                continue
            self.take("[")
            first = self.expression()
            if self.took(":"):
                found = ("slice", found, first, self.expression())
            elif self.took("+:"):
                found = ("part", found, first, self.expression())
            else:
                found = ("index", found, first)
            self.take("]")
        return found

    def primary(self) -> Node:
        word = self.take()
        if word == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if word == "{":
            high = self.expression()
            self.take(",")
            low = self.expression()
            self.take("}")
            return ("join", high, low)
        if re.fullmatch(r"\d+'[A-Z]+", word):
            self.take("(")
            inner = self.expression()
            self.take(")")
            return ("cast", word, inner)
        if word[:1].isdigit():
            return ("number", word)
        if self.took("("):
            arguments = [] if self.peek() == ")" else [self.expression()]
            while self.took(","):
                arguments.append(self.expression())
            self.take(")")
            return ("call", word, arguments)
        if not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise NotUnderstood(word)
        return ("name", word)

"""Who greenlane is at which GitHub: token and API address from the environment, never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from greenlane.errors import EnvironmentMissing, MatrixError

PUBLIC = "https://api.github.com"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
REPOSITORY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")


@dataclass(frozen=True, slots=True)
class Account:
    """A token and where it is valid."""

    api: str
    token: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.api).netloc

    def masked(self, text: str) -> str:
        """The text without the token, for messages that repeat what a server said."""
        return text.replace(self.token, "***") if self.token else text


def account(environment: Mapping[str, str]) -> Account:
    """The account of the environment. Raises EnvironmentMissing without a token, MatrixError for an unsafe address."""
    api = environment.get("GITHUB_API_URL", "").strip().rstrip("/") or PUBLIC
    parts = urlsplit(api)
    if parts.username or parts.query or parts.fragment or not parts.hostname:
        raise MatrixError("GITHUB_API_URL is no plain address; GitHub Enterprise Server has https://HOST/api/v3")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise MatrixError(f"GITHUB_API_URL {api}: the token is sent by https only; write https://{parts.netloc}")
    token = next((found for name in TOKENS if (found := environment.get(name, "").strip())), "")
    if not token:
        raise EnvironmentMissing("no token: put one into GITHUB_TOKEN or GH_TOKEN (in a workflow: ${{ github.token }})")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise EnvironmentMissing("the token of GITHUB_TOKEN or GH_TOKEN holds what no token has; copy it again")
    return Account(api, token)


def repository(text: str) -> str:
    """`owner/name`, checked. Raises MatrixError."""
    if not REPOSITORY.fullmatch(text) or text.endswith(("/.", "/..")):
        raise MatrixError(f"--repo {ascii(text)[:120]}: not OWNER/NAME, such as octo-org/engine")
    return text

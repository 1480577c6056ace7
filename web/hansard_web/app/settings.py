"""What the web app is told at start: doors, tokens, retention; it reads no environment."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_store.principals.authority import DecideMode
from hansard_store.principals.model import ALL_SCOPES, Scope

_SCOPED = re.compile(
    r"(?P<scopes>(?:ingest|read|decide|admin)(?:\+(?:ingest|read|decide|admin))*):"
)
_SHORTEST_TOKEN = 8


@dataclass(frozen=True, slots=True)
class Token:
    """A secret and what it opens."""

    secret: str = field(repr=False)
    scopes: frozenset[Scope] = ALL_SCOPES

    def allows(self, scope: Scope) -> bool:
        """Whether the token opens doors of this scope; `admin` opens all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def parse_token(text: str) -> Token:
    """Read `SECRET` (may do everything) or `ingest:SECRET`, `read+decide:SECRET`.

    Raises ConfigError for a secret too short to be one.
    """
    match = _SCOPED.match(text)
    secret = text[match.end() :] if match else text
    if len(secret) < _SHORTEST_TOKEN:
        raise ConfigError(f"a token needs at least {_SHORTEST_TOKEN} characters")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigError("a token is made of printable ASCII characters without spaces")
    if match is None:
        return Token(secret)
    return Token(secret, frozenset(Scope(name) for name in match["scopes"].split("+")))


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Everything `create_app` needs to know beside the store and the pipeline."""

    tokens: tuple[Token, ...] = ()
    allow_hosts: tuple[str, ...] = ()  # names beside localhost and the bound address
    bound_host: str = "127.0.0.1"
    http_address: str = "127.0.0.1:4318"  # as people should type it
    grpc_address: str | None = "127.0.0.1:4317"  # None: no gRPC door in this process
    cors_origins: frozenset[str] = frozenset()  # "https://app.example": pages that may post OTLP
    secure_cookies: bool = False  # True behind TLS
    retention: str = "redacted_payloads"
    durability: str = "normal"
    policy: tuple[Path, ...] = ()  # files of rule sets, or shipped:NAME
    model_server: str | None = None  # OpenAI-compatible, for model calls of the sidecar
    script: Json | None = None  # of the scripted model, where whoever asks brings none
    mcp: bool = True  # whether /mcp answers
    heads_copy: str | None = None  # folder for second copies of heads, or off
    decide: str = "principals"  # who may decide: principals, or anyone as in 0.1
    recipients: tuple[str, ...] = ()  # of status reports
    report_window_ns: int = 24 * 3_600 * 10**9  # that a report looks back on
    report_escalation_ns: int = 24 * 3_600 * 10**9  # until a report waits for the next recipient

    @property
    def decide_mode(self) -> DecideMode:
        """Who may decide, as the store has it."""
        return "principals" if self.needs_principal else "anyone"

    @property
    def needs_principal(self) -> bool:
        """Whether a decision needs a credential."""
        return self.decide != "anyone"

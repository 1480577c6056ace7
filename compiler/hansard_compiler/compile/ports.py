"""The ports of a compile: counting, policy, relevance, compression, rendering.

Each is one narrow protocol. None of them may read a clock, a disk or a network if the compile is
to be repeatable; a compressor that calls a model is the caller's own step and is recorded as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hansard_compiler.compile.models import Effect
from hansard_compiler.policy.masks import Mask
from hansard_compiler.redaction.redactor import Redactor


class TokenCounter(Protocol):
    """Estimates the tokens of a text; `tokens.estimator_for` gives one for each provider."""

    @property
    def name(self) -> str: ...  # stored with the compile: another counter, another hash

    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What a policy decides about: an item, and for whom it is compiled."""

    item_id: str
    kind: str
    sensitivity: str
    source_type: str
    source_uri: str | None
    tags: frozenset[str]
    scope: Mapping[str, Any]  # of the item
    metadata: Mapping[str, Any]
    provider: str
    model: str
    agent: str | None
    task_type: str | None
    environment: str | None
    compile_scope: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """A policy's decision about one item."""

    effect: Effect = "allow"
    rule_ids: tuple[str, ...] = ()
    priority_micro: int = 0  # 0 to 1,000,000: the policy-priority term of the score
    # What to cut when the effect is `redact`: masks by rule id, names of redaction rules (`pii`,
    # `email`, …). With neither, or with a name not known, all of the content goes.
    masks: tuple[tuple[str, Mask], ...] = ()
    redact: tuple[str, ...] = ()
    failed: bool = False  # a condition could not be evaluated, so it denies


ALLOWED = PolicyVerdict()


class PolicyDecider(Protocol):
    """Decides whether an item may be shown. An exception denies."""

    def decide(self, subject: Subject) -> PolicyVerdict: ...


class RelevancePort(Protocol):
    """Rates texts against a query, 0 to 1,000,000 each, in the order of the texts."""

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[int]: ...


class Compressor(Protocol):
    """Shortens a text to at most `target_tokens`; None or an empty text means it could not.

    It never sees what policy withholds, nor secrets.
    """

    def __call__(
        self, text: str, *, query: str, target_tokens: int, counter: TokenCounter
    ) -> str | None: ...


class _Renderer(Protocol):
    """Makes a provider's request of the provider-neutral payload."""

    def __call__(self, payload: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one compile. None is the built-in; of policy: allow all."""

    counter: TokenCounter
    redactor: Redactor
    policy: PolicyDecider | None = None
    relevance: RelevancePort | None = None
    compressor: Compressor | None = None
    renderer: _Renderer | None = None

"""Whether a batch of spans may hold a secret: asked of all of them at once, without encoding any.

Doubt is enough to look closely: what is unusual in form is suspicious here. The look itself is the
same as the collector's (`hansard_compiler.redaction.otlp`): a value is cleaned when its name
announces a secret, or when its text looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hansard._export.queue import items_of
from hansard_compiler.redaction.checks import is_sensitive_key

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from hansard_compiler.redaction.redactor import Redactor

_MOST_NAMES: Final = 10_000
_BETWEEN: Final = "\0\n"  # so that two JSON texts do not look like lines of a stream
_REF: Final = re.compile(r"sha256:[0-9a-f]{64}")  # a payload's, which no rule takes for a secret
_REF_CHARS: Final = 71
_SAFE: Final = (bool, int, float, type(None))


class _Doubt(Exception):
    """Something that is worth a close look."""


class Suspicion:
    """Remembers names of attributes that announce nothing. Used by one thread at a time."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._plain_names: set[str] = set()
        self._plain_scopes: dict[int, Any] = {}  # resources and scopes, by id and kept alive

    def falls_on(self, spans: Sequence[ReadableSpan]) -> bool:
        """Say whether any of these spans may hold a secret; False is certain."""
        try:
            texts: list[str] = []
            for span in spans:
                self._gather(span, texts)
            raw = _BETWEEN.join(texts).encode()
        except (_Doubt, UnicodeEncodeError, RuntimeError):
            return True
        return self._redactor.scan_bytes(raw)

    def _gather(self, span: ReadableSpan, texts: list[str]) -> None:
        context = span.get_span_context()
        texts.append(span.name)
        self._gather_of(span.attributes, texts)
        for event in span.events:
            texts.append(event.name)
            self._gather_of(event.attributes, texts)
        for link in span.links:
            texts += link.context.trace_state.values()
            self._gather_of(link.attributes, texts)
        if span.status.description:
            texts.append(span.status.description)
        if context is not None and context.trace_state:
            texts += context.trace_state.values()
        for shared in (span.resource, span.instrumentation_scope):
            if id(shared) not in self._plain_scopes:
                self._look_at_shared(shared)

    def _look_at_shared(self, shared: Any) -> None:
        """Look at a resource or scope, once: spans share them."""
        if shared is None:
            return
        texts = [shared.schema_url or ""]
        self._gather_of(shared.attributes, texts)
        texts += [getattr(shared, "name", None) or "", getattr(shared, "version", None) or ""]
        if self._redactor.scan_bytes(_BETWEEN.join(texts).encode()):
            raise _Doubt
        self._plain_scopes[id(shared)] = shared

    def _gather_of(self, attributes: Mapping[str, Any] | None, texts: list[str]) -> None:
        for key, value in items_of(attributes):
            if key not in self._plain_names:
                self._learn(key)
            if isinstance(value, str):
                # The automaton has no states for random digits: each costs it a hundred letters.
                if not (len(value) == _REF_CHARS and _REF.fullmatch(value)):
                    texts.append(value)
            elif isinstance(value, Sequence) and not isinstance(value, bytes):
                for one in value:
                    # A flag in a list announces what follows it: `--api-key`, `...`.
                    if isinstance(one, str) and not one.startswith("--"):
                        texts.append(one)
                    elif not isinstance(one, _SAFE):
                        raise _Doubt
            elif not isinstance(value, _SAFE):
                raise _Doubt

    def _learn(self, key: str) -> None:
        raw = key.encode()
        if is_sensitive_key(raw) or self._redactor.scan_bytes(raw):
            raise _Doubt
        if len(self._plain_names) < _MOST_NAMES:
            self._plain_names.add(key)

"""Whether a batch of spans may hold a secret: asked of all of them at once, without encoding any.

Doubt is enough to look closely: what is unusual in form is suspicious here. The look itself is the
same as the collector's (`hansard_compiler.cleaning`): a value is cleaned when its name announces a
secret, or when its text looks like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hansard_compiler.redaction_checks import is_sensitive_key

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from hansard_compiler.redaction import Redactor

_MOST_NAMES: Final = 10_000
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
            texts = [text for span in spans for text in self._texts(span)]
            raw = "\n".join(texts).encode()
        except (_Doubt, UnicodeEncodeError, RuntimeError):
            return True
        return self._redactor.scan_bytes(raw)

    def _texts(self, span: ReadableSpan) -> Iterator[str]:
        context = span.get_span_context()
        yield span.name
        yield from self._of(span.attributes)
        for event in span.events:
            yield event.name
            yield from self._of(event.attributes)
        for link in span.links:
            yield from link.context.trace_state.values()
            yield from self._of(link.attributes)
        if span.status.description:
            yield span.status.description
        if context is not None:
            yield from context.trace_state.values()
        for shared in (span.resource, span.instrumentation_scope):
            self._look_at_shared(shared)

    def _look_at_shared(self, shared: Any) -> None:
        """Look at a resource or scope, once: spans share them."""
        if shared is None or id(shared) in self._plain_scopes:
            return
        texts = [shared.schema_url or "", *self._of(shared.attributes)]
        texts += [getattr(shared, "name", None) or "", getattr(shared, "version", None) or ""]
        if self._redactor.scan_bytes("\n".join(texts).encode()):
            raise _Doubt
        self._plain_scopes[id(shared)] = shared

    def _of(self, attributes: Mapping[str, Any] | None) -> Iterator[str]:
        for key, value in (attributes or {}).items():
            if key not in self._plain_names:
                self._learn(key)
            if isinstance(value, str):
                yield value
            elif isinstance(value, Sequence) and not isinstance(value, bytes):
                for one in value:
                    # A flag in a list announces what follows it: `--api-key`, `...`.
                    if isinstance(one, str) and not one.startswith("--"):
                        yield one
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

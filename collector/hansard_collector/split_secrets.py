"""Secrets in the chunks of a stream: no chunk shows one, the answer put together of them would.

A provider sends `sk-an`, then `t-api03-…`. What a stream says is searched and shown whole, so it is
cleaned whole: the first chunk gets all of a text in which a secret was found, the others nothing.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from hansard_collector.dialects import mlflow, openai_stream
from hansard_collector.dialects.values import mapping, opened
from hansard_compiler.cleaning import Removed
from hansard_compiler.redaction import Redactor

_MARK = openai_stream.CHUNK.encode()


def may_hold_stream(raw: bytes) -> bool:
    """Return whether serialised telemetry may hold chunks of a stream; False is certain."""
    return _MARK in raw


def cut_split_secrets(span: Any, redactor: Redactor) -> Removed:
    """Cut the secrets out of the streams of a span, in place; say what went."""
    found: Removed = Counter()
    for pair in span.attributes:
        if openai_stream.CHUNK in pair.value.string_value:
            sent = opened(pair.value.string_value)
            if openai_stream.is_stream(sent):
                chunks = [mapping(chunk) for chunk in sent]
                if rules := _cut(chunks, redactor):
                    pair.value.string_value = json.dumps(chunks)
                    found += _told(rules, f"attributes.{pair.key}")
    return found + _of_events(span, redactor)


def _of_events(span: Any, redactor: Redactor) -> Removed:
    values = [
        pair.value
        for event in span.events
        if event.name.startswith(mlflow.CHUNK_EVENT)
        for pair in event.attributes
        if pair.key == mlflow.CHUNK_VALUE
    ]
    chunks = [mapping(value.string_value) for value in values]
    rules = _cut(chunks, redactor)
    for value, chunk in zip(values, chunks, strict=True):
        if rules and chunk:
            value.string_value = json.dumps(chunk)
    return _told(rules, f"events.attributes.{mlflow.CHUNK_VALUE}")


def _cut(chunks: Sequence[Any], redactor: Redactor) -> Counter[str]:
    """Clean what chunks say bit by bit, in place; return how often each rule held."""
    rules: Counter[str] = Counter()
    texts: dict[str | int, list[tuple[dict[str, Any], str]]] = defaultdict(list)
    for piece in openai_stream.pieces(chunks):
        texts[piece.of].append((piece.holder, piece.name))
    for said in texts.values():
        text, findings = redactor.redact_text("".join(holder[name] for holder, name in said))
        for finding in findings:
            rules[finding.rule] += finding.count
        if findings:
            for holder, name in said:
                holder[name], text = text, ""
    return rules


def _told(rules: Counter[str], field: str) -> Removed:
    return Counter({(rule, field): count for rule, count in rules.items()})

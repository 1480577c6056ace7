"""Secrets in a stream whose chunks are events of a span: no event shows one, all of them do.

Streams inside of one text are the redactor's (`hansard_compiler.redaction_streams`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from hansard_compiler.cleaning import Removed
from hansard_compiler.redaction import Redactor
from hansard_compiler.redaction_streams import clean_chunks

_CHUNK = "chunk"  # in the names of such events: of MLflow, Traceloop and others


def cut_split_secrets(span: Any, redactor: Redactor) -> Removed:
    """Cut the secrets out of the chunks among a span's events, in place; say what went."""
    series: defaultdict[str, list[Any]] = defaultdict(list)
    for event in span.events:
        if _CHUNK in event.name:
            for pair in event.attributes:
                if pair.value.string_value:
                    series[pair.key].append(pair.value)
    found: Removed = Counter()
    for key, values in series.items():
        for rule, count in _cut(values, redactor).items():
            found[rule, f"events.attributes.{key}"] += count
    return found


def _cut(values: Sequence[Any], redactor: Redactor) -> Counter[str]:
    """Clean what values say bit by bit, as JSON or as text; return how often each rule held."""
    rules: Counter[str] = Counter()

    def clean(texts: Sequence[str]) -> list[str]:
        made, findings = redactor.redact_series(texts)
        for finding in findings:
            rules[finding.rule] += finding.count
        return made

    chunks = [_chunk(value.string_value) for value in values]
    for number in clean_chunks(chunks, clean):
        chunk = chunks[number]
        is_text = isinstance(chunk, list)
        values[number].string_value = chunk[0] if is_text else json.dumps(chunk)
    return rules


def _chunk(text: str) -> Any:
    try:
        chunk = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return chunk if isinstance(chunk, dict) else [text]

"""Cuts secrets out of texts: each leaves ``‹redacted:rule:fingerprint›`` where it stood.

What holds, by test: redacting twice changes nothing; a marker is never taken for a secret; a text
that parses as JSON still does, with the same structure; rules see through JSON escapes (to any
depth that occurs), one layer of base64, and chunks of a stream, whose bits of a text are looked
through together (streams.py); time is linear in the text (google-re2).

Work on a text ends at 1,000 matches, 50,000 near misses, half a million stretches of what might be
base64, or when it keeps yielding secrets: then the whole value is replaced, under the rule name
`everything`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import re2

from hansard_compiler.redaction.checks import is_assigned_secret, is_sensitive_key, latin1
from hansard_compiler.redaction.decoded_views import base64_runs, unescaped, wide_charsets
from hansard_compiler.redaction.prefilter import (
    base64_guard_for,
    guard_for,
    matchers_for,
    suggests_base64,
    suggests_wide,
)
from hansard_compiler.redaction.rules import SECRET_RULES, SecretRule
from hansard_compiler.redaction.streams import clean_streams, may_hold_stream

EVERYTHING = "everything"
_ASSIGNMENT = "assignment"

_MAX_MATCHES = 1_000  # a match costs 5 to 16 µs: 64 MiB of them would take half a minute
_MAX_CANDIDATES = 50_000  # texts that look like secrets to a pattern and not to its check
_MAX_RUNS = 500_000  # stretches that might be base64, in a value that holds a suspicious one
_LONG_MATCH_BYTES = 4096
_MAX_ROUNDS = 4
_MAX_ESCAPE_DEPTH = 8
_FINGERPRINT_DIGITS = 12

_MARKER = re2.compile(
    "‹(?:redacted:[a-z0-9\\-]{1,32}:[0-9a-f]{12}|withheld:[0-9]{1,12})›".encode(),
    options=latin1(),
)
_MARKER_START = "‹".encode()
_AROUND_SECRETS = b"\"'`@,;<>()[]{}&\\ \t\r\n"
_JSON_STARTS = (b"{", b"[", b'"')
_STRING = re2.compile(rb'"((?:[^"\\]|\\(?s:.))*)"', options=latin1())
_ELEMENT = re2.compile(
    rb"""["]((?:[^"\\\s\x00]|\\[^\s\x00]){8,})"|['`]([^"'`\\\s\x00]{8,})['`]""",
    options=latin1(),
)
_BEFORE_QUOTE = re2.compile(rb'(?:[^"\\]|\\(?s:.))*', options=latin1())


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret that was cut out, and how often it stood in the value."""

    rule: str
    fingerprint: str
    count: int = 1


class RedactedText(NamedTuple):
    text: str
    findings: list[SecretFinding]


class RedactedBytes(NamedTuple):
    data: bytes
    findings: list[SecretFinding]


class _Span(NamedTuple):
    start: int
    end: int
    rank: int  # position of its rule: the smallest of overlapping spans names the marker
    rule: str
    fingerprint: str


class _TooMuch(Exception):
    """A value that holds more than is worth telling apart."""


class _Budget:
    """Counts what was looked at in one value, over all its views."""

    __slots__ = ("_candidates", "_runs")

    def __init__(self) -> None:
        self._candidates = _MAX_CANDIDATES
        self._runs = _MAX_RUNS

    def spend_candidate(self) -> None:
        self._candidates -= 1
        if self._candidates < 0:
            raise _TooMuch

    def spend_run(self) -> None:
        self._runs -= 1
        if self._runs < 0:
            raise _TooMuch


class Redactor:
    """Finds and cuts secrets; equal secrets leave equal fingerprints under equal keys.

    Safe to share between threads: nothing changes after construction. The automata are compiled
    once per process (about 30 ms) and shared by all redactors of the same rules.
    """

    def __init__(self, key: bytes, *, rules: Sequence[SecretRule] = SECRET_RULES) -> None:
        self._key = key
        self._rules = tuple(rules)
        self._guard = guard_for(self._rules)
        self._base64_guard = base64_guard_for(self._rules)
        self._matchers = matchers_for(self._rules)
        self._patterns = [_Pattern(rule.pattern, is_list=rule.is_list) for rule in self._rules]

    def with_rules(self, rules: Sequence[SecretRule]) -> Redactor:
        """Return a redactor of other rules under the same key: equal finds, equal fingerprints."""
        return Redactor(self._key, rules=rules)

    def scan_bytes(self, raw: bytes) -> bool:
        """Return whether anything inside these bytes could be redacted; False is certain.

        `raw` is a text, or a protobuf message in canonical field order (as `SerializeToString`
        writes it) with any number of texts in it. About 8 µs for 3 KB.
        """
        return self._guard.Match(raw) is not None or may_hold_stream(raw)

    def keyed_digest(self, content: bytes) -> str:
        """Return 64 hex digits that are equal for equal content, useless without the key."""
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    def fingerprint(self, secret: bytes) -> str:
        """Return what replaces a secret in its marker."""
        return self.keyed_digest(secret)[:_FINGERPRINT_DIGITS]

    def redact_text(self, text: str, *, key: str = "") -> RedactedText:
        """Return the text without its secrets, and what they were; the same text when clean.

        `key` is the name the text stands under, if any: `x-api-key` makes a secret of a value
        that says nothing by itself.
        """
        data = text.encode("utf-8", "surrogatepass")
        clean, findings = self._redact(data, key.encode("utf-8", "surrogatepass"))
        if not findings:
            return RedactedText(text, [])
        return RedactedText(clean.decode("utf-8", "surrogatepass"), findings)

    def redact_bytes(self, data: bytes, media_type: str = "", *, key: str = "") -> RedactedBytes:
        """Return bytes without their secrets; of any type, since a text may hide in any.

        `media_type` matters for its charset: UTF-16 and UTF-32 are read and written back as such.
        Compressed and encrypted content cannot be looked into.
        """
        name = key.encode("utf-8", "surrogatepass")
        charset = _wide_charset(media_type)
        if charset:
            try:
                text = data.decode(charset)
            except UnicodeDecodeError:
                return RedactedBytes(*self._redact(data, name))
            redacted = self.redact_text(text, key=key)
            if not redacted.findings:
                return RedactedBytes(data, [])
            return RedactedBytes(redacted.text.encode(charset), redacted.findings)
        return RedactedBytes(*self._redact(data, name))

    def redact_series(self, texts: Sequence[str]) -> tuple[list[str], list[SecretFinding]]:
        """Return texts that follow each other without the secrets in what they form together.

        A marker stands in the text that its secret began in; the others keep what is around it.
        """
        bits = [text.encode("utf-8", "surrogatepass") for text in texts]
        clean, findings = self._cleaned(bits)
        with suppress(UnicodeDecodeError):
            if findings is not None:
                return [bit.decode("utf-8", "surrogatepass") for bit in clean], findings
        fingerprint = self.fingerprint(b"".join(clean))
        marker = _marker(EVERYTHING, fingerprint).decode()
        return [marker, *("" for _ in texts[1:])], [SecretFinding(EVERYTHING, fingerprint)]

    def _cleaned(
        self, bits: Sequence[bytes], key: bytes = b""
    ) -> tuple[Sequence[bytes], list[SecretFinding] | None]:
        """Return texts in a row without their secrets; no findings where that comes to no end."""
        counts: Counter[tuple[str, str]] = Counter()
        try:
            for _ in range(_MAX_ROUNDS):
                spans = _merged(self._spans_under(b"".join(bits), key))
                if not spans:
                    return bits, _findings(counts)
                counts.update((span.rule, span.fingerprint) for span in spans)
                bits = _cut_bits(bits, spans)
        except _TooMuch:
            pass  # shown by the marker that replaces the whole value, like a text that never ends
        return bits, None

    def _redact(self, data: bytes, key: bytes) -> tuple[bytes, list[SecretFinding]]:
        # Streams first: of a secret that one chunk holds nearly whole, no end is to be left.
        streamed, of_streams = self._redact_streams(data)
        narrow, of_wide = self._redact_wide(streamed, key)
        clean, found = self._redact_whole(narrow, key)
        return clean, [*of_streams, *of_wide, *found]

    def _redact_wide(self, data: bytes, key: bytes) -> tuple[bytes, list[SecretFinding]]:
        """Clean UTF-16 in bytes of which no charset is known."""
        fired = self._guard.Match(data) if b"\0" in data else None
        if fired is None or not suggests_wide(fired, self._rules):
            return data, []
        found: list[SecretFinding] = []
        for charset in wide_charsets(data):
            even = len(data) & ~1
            text = data[:even].decode(charset, "surrogatepass").encode("utf-8", "surrogatepass")
            clean, findings = self._redact(text, key)
            if findings:
                wide = clean.decode("utf-8", "surrogatepass").encode(charset, "surrogatepass")
                data = wide + data[even:]
                found.extend(findings)
        return data, found

    def _redact_streams(self, data: bytes) -> tuple[bytes, list[SecretFinding]]:
        if not may_hold_stream(data):
            return data, []
        counts: Counter[tuple[str, str]] = Counter()

        def clean(texts: Sequence[str], /, *, is_trial: bool = False) -> list[str]:
            made, findings = self.redact_series(texts)
            for one in () if is_trial else findings:
                counts[one.rule, one.fingerprint] += one.count
            return made

        text = clean_streams(data.decode("utf-8", "surrogateescape"), clean)
        if not counts:
            return data, []
        return text.encode("utf-8", "surrogateescape"), _findings(counts)

    def _redact_whole(self, data: bytes, key: bytes) -> tuple[bytes, list[SecretFinding]]:
        named = is_sensitive_key(key)
        if not named and self._guard.Match(data) is None:
            return data, []
        (clean,), findings = self._cleaned([data], key if named else b"")
        if findings is not None:
            return clean, findings
        fingerprint = self.fingerprint(data)
        marker = _marker(EVERYTHING, fingerprint)
        quoted = b'"' + marker + b'"' if data.lstrip().startswith(_JSON_STARTS) else marker
        return quoted, [SecretFinding(EVERYTHING, fingerprint)]

    def _spans_under(self, text: bytes, key: bytes) -> list[_Span]:
        spans = self._spans(text, _Budget())
        if key:
            spans.extend(self._named_spans(_masked(text), key))
        return spans

    def _named_spans(self, text: bytes, key: bytes) -> Iterator[_Span]:
        """Return what is a secret for the name it is under: all of it, or strings of a JSON."""
        if not text.lstrip().startswith(_JSON_STARTS):
            if is_assigned_secret(text, key):
                yield self._span(text, 0, len(text), len(self._rules), _ASSIGNMENT)
            return
        for found in _STRING.finditer(text):
            start, end = found.span(1)
            if is_assigned_secret(text[start:end], key):
                yield self._span(text, start, end, len(self._rules), _ASSIGNMENT)

    def _spans(
        self, text: bytes, budget: _Budget, *, depth: int = 0, in_base64: bool = False
    ) -> list[_Span]:
        """Return all secrets in a text and in its views, as stretches of the text, unordered."""
        text = _masked(text)
        suspicions = self._guard.Match(text)
        if suspicions is None:
            return []
        spans = list(self._plain_spans(text, budget))
        if not in_base64 and suggests_base64(suspicions, self._rules):
            spans.extend(self._base64_spans(text, budget))
        view = unescaped(text) if depth < _MAX_ESCAPE_DEPTH else None
        if view is not None:
            for span in self._spans(view.data, budget, depth=depth + 1, in_base64=in_base64):
                start, end = view.to_source(span.start, span.end)
                end = _before_quote(text, start, end)
                if start < end:
                    spans.append(span._replace(start=start, end=end))
        if len(spans) > _MAX_MATCHES:
            raise _TooMuch
        return spans

    def _plain_spans(self, text: bytes, budget: _Budget) -> Iterator[_Span]:
        matches = 0
        for rank in self._matchers.Match(text) or ():
            rule = self._rules[rank]
            for start, end, key in self._patterns[rank].secrets_in(text):
                budget.spend_candidate()
                if rule.check is None or rule.check(text[start:end], key):
                    yield self._span(text, start, end, rank, rule.name)
                    matches += 1
                    if matches > _MAX_MATCHES:
                        raise _TooMuch

    def _base64_spans(self, text: bytes, budget: _Budget) -> Iterator[_Span]:
        for run in base64_runs(text):
            budget.spend_run()
            if self._base64_guard.Match(run.characters) is None:
                continue
            budget.spend_candidate()
            for decoded in run.decodings():
                inner = self._spans(decoded, budget, in_base64=True)
                if inner:
                    first = min(inner, key=lambda span: (span.rank, span.start))
                    yield first._replace(start=run.start, end=run.end)
                    break

    def _span(self, text: bytes, start: int, end: int, rank: int, rule: str) -> _Span:
        return _Span(start, end, rank, rule, self.fingerprint(text[start:end]))


class _Pattern:
    """A rule's pattern, matched so that the length of a match does not matter.

    Finding where a match begins and ends takes an automaton 3 ns a byte; finding its groups takes
    200. Of a very long match only the head is searched for them.
    """

    __slots__ = ("_capture", "_find", "_has_groups", "_is_list", "_key_group")

    def __init__(self, pattern: bytes, *, is_list: bool = False) -> None:
        self._is_list = is_list
        without_groups = latin1()
        without_groups.never_capture = True
        self._find = re2.compile(pattern, options=without_groups)
        self._capture = re2.compile(pattern, options=latin1())
        self._has_groups = self._capture.groups > 0
        self._key_group = self._capture.groupindex.get(b"key", 0)

    def secrets_in(self, text: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Return where each secret is, and the name it is under (or nothing)."""
        for found in self._find.finditer(text):
            start, end = found.span()
            if self._is_list:
                yield from self._elements(text, start, min(end, start + _LONG_MATCH_BYTES))
            elif not self._has_groups:
                yield start, end, b""
            elif end - start <= _LONG_MATCH_BYTES:
                yield self._group(text, start, end) or (start, end, b"")
            else:
                head = self._group(text, start, start + _LONG_MATCH_BYTES)
                secret_start, _, key = head or (start, end, b"")
                # What ends the match may be a quote or the like, which is not the secret's.
                secret_end = secret_start + len(text[secret_start:end].rstrip(_AROUND_SECRETS))
                yield secret_start, secret_end, key

    def _elements(self, text: bytes, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
        """Return the strings of a list; of a very long one, those in its head."""
        start, end, key = self._group(text, start, end) or (start, end, b"")
        for found in _ELEMENT.finditer(text, start, end):
            yield *found.span(1 if found.start(1) >= 0 else 2), key

    def _group(self, text: bytes, start: int, end: int) -> tuple[int, int, bytes] | None:
        found = self._capture.match(text, start, end)
        if found is None:
            return None
        key = found.group(self._key_group) if self._key_group else b""
        for group in range(1, self._capture.groups + 1):
            if group != self._key_group and found.start(group) >= 0:
                return *found.span(group), key
        return found.start(), found.end(), key


def _marker(rule: str, fingerprint: str) -> bytes:
    return f"‹redacted:{rule}:{fingerprint}›".encode()


def _masked(text: bytes) -> bytes:
    """Blank the markers, keeping every offset: no rule and no class takes a NUL."""
    if _MARKER_START not in text:
        return text
    pieces = []
    at = 0
    for found in _MARKER.finditer(text):
        pieces += [text[at : found.start()], bytes(found.end() - found.start())]
        at = found.end()
    return b"".join((*pieces, text[at:]))


def _before_quote(text: bytes, start: int, end: int) -> int:
    """Return where a stretch found in a view must end not to leave the JSON string it began in."""
    if b'"' not in text[start:end]:
        return end
    return start + int(_BEFORE_QUOTE.match(text[start:end]).end())


def _findings(counts: Counter[tuple[str, str]]) -> list[SecretFinding]:
    return [SecretFinding(*found, count) for found, count in counts.items()]


def _merged(spans: list[_Span]) -> list[_Span]:
    """Return disjoint spans in order; of those that overlap, the most telling rule names all.

    Of one rule the longer: of a private key in JSON, the text as it stands shows the first line.
    """
    merged: list[_Span] = []
    for span in sorted(spans):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            continue
        last = merged[-1]
        named = min(last, span, key=lambda one: (one.rank, one.start - one.end))
        merged[-1] = named._replace(start=last.start, end=max(last.end, span.end))
    return merged


def _cut_bits(bits: Sequence[bytes], spans: list[_Span]) -> list[bytes]:
    """Cut stretches of joined texts out of them; each marker is where its secret began."""
    made = []
    at = number = 0
    for bit in bits:
        end, here, pieces = at + len(bit), at, []
        while number < len(spans) and spans[number].start < end:
            span = spans[number]
            if span.start >= at:
                pieces += [bit[here - at : span.start - at], _marker(span.rule, span.fingerprint)]
            here = min(span.end, end)
            if span.end > end:
                break
            number += 1
        made.append(b"".join((*pieces, bit[here - at :])))
        at = end
    return made


def _wide_charset(media_type: str) -> str:
    for parameter in media_type.lower().split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        charset = value.strip().strip("\"'")
        if name.strip() == "charset" and charset.startswith(("utf-16", "utf-32", "utf16", "utf32")):
            return charset if len(charset) <= 9 else ""
    return ""

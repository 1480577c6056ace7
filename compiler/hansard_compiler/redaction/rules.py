"""What a secret looks like: one rule a kind, matched by google-re2, hence in linear time.

Rules of keys and tokens that show by their form stand in `rules.toml`, the others here.

A rule has three faces, and the second and third must be wider than the first:

- ``pattern`` finds the secret in plain text (UTF-8 bytes, LATIN1 rules, ``\\b`` is ASCII). The
  secret is the whole match, or its one group (other than ``key``) that took part.
- ``guard`` finds the same text under any depth of ordinary JSON escaping, inside the raw bytes of
  a request. No ``\\b``: the length byte before a protobuf string is often a letter. It may fire
  for nothing, which costs a closer look; it may never stay silent on a secret.
- ``shapes`` are byte sequences one of which every match contains: `prefilter` turns them
  into what they look like inside base64.

No secret may contain a bare double quote, so that cutting it out of a JSON text leaves JSON.
Rule names stand in markers, before a colon: none ends in a `KEYWORD`, or markers would look like
assignments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hansard_compiler.redaction.checks import (
    KEYWORD,
    is_assigned_secret,
    is_basic_credentials,
    is_password_in_url,
    is_random,
)

# Shapes: byte sequences one of which every match of a rule contains.

Shape = tuple[frozenset[int], ...]  # for each position, the bytes that may stand there


def shape(*parts: bytes | frozenset[int]) -> Shape:
    """Join literal bytes and sets of bytes into a shape."""
    positions: list[frozenset[int]] = []
    for part in parts:
        if isinstance(part, frozenset):
            positions.append(part)
        else:
            positions.extend(frozenset((byte,)) for byte in part)
    return tuple(positions)


def any_case(word: bytes) -> Shape:
    return tuple(frozenset((*bytes((b,)).lower(), *bytes((b,)).upper())) for b in word)


def literals(*words: bytes) -> tuple[Shape, ...]:
    return tuple(shape(word) for word in words)


Check = Callable[[bytes, bytes], bool]  # (secret, key it stood under or b"") -> is it one?


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret."""

    name: str
    finds: str  # one line for docs/retention.md
    pattern: bytes
    guard: bytes
    shapes: tuple[Shape, ...]
    check: Check | None = None
    is_list: bool = False  # the group is a list: each string in it may be a secret


# --- The rules, most telling first: where two overlap, the first names the marker ---------------

_TOKEN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~.-")
_DIGIT = frozenset(b"0123456789")
# What may follow a sensitive name, quotes and white space included.
_AFTER_NAME = frozenset(b"\"'` \t\r\n\f:=>\\_-0123456789")
_BLANK = frozenset(b" \t\\")
_NAME_SHAPES = tuple(
    (*any_case(word), _AFTER_NAME)
    for word in (
        *(b"passwd", b"password", b"passphrase", b"passcode", b"pwd", b"secret", b"credential"),
        *(b"authorization", b"cookie", b"token", b"key"),
    )
)
# `credentials` has one letter more than the shape that stands for both.
_NAME_SHAPES = (*_NAME_SHAPES, (*any_case(b"credentials"), _AFTER_NAME))
_NAMES_SHAPES = tuple((*one[:-1], frozenset(b"sS"), _AFTER_NAME) for one in _NAME_SHAPES)

# Between a name and its separator, and around it: quotes and white space, escaped to any depth.
_GAP = rb"""(?:[\s"'`\\]|\\[nrt]|\\u00[0-9a-fA-F]{2})*"""
_QUOTE = rb"""\\*(?:["'`]|u00(?:22|27|60))"""
_VALUE = rb"[A-Za-z0-9_\-./+=~!@#$%^*:?|]"  # no `&`: it ends a value in a query string

# A quoted value, the scheme of a header before it left out; `b` as Python writes bytes.
_SCHEME = rb"(?:[A-Za-z\-]{3,20}[ \t]+)?"
_SCHEME_AND_VALUE = (
    rb"""[bB]?(?:["]""" + _SCHEME + rb"""((?:[^"\\\s\x00]|\\[^\s\x00]){8,})"|['`]"""
    + _SCHEME + rb"""([^"'`\\\s\x00]{8,})['`])"""
)  # fmt: skip

# Fields and lines of base64, then the checksum that ends a key.
_PUTTY_LINES = (
    rb"(?:\s+(?:(?:Encryption|Comment|Public-Lines|Key-Derivation|Argon2-[A-Za-z]{4,12}"
    rb"|Private-Lines):[^\n\r\"\x00]{0,300}|[A-Za-z0-9+/=]{1,80}))+"
    rb"(?:\s+Private-(?:MAC|Hash): ?[0-9a-fA-F]{0,64})?"
)

_HEX = frozenset(b"0123456789abcdef")
# Of rules of `rules.toml`, those that need sets of characters.
_SHAPES: dict[str, tuple[Shape, ...]] = {
    "azure-client": (shape(_TOKEN, _TOKEN, _TOKEN, _DIGIT, b"Q~", _TOKEN, _TOKEN, _TOKEN, _TOKEN),),
    "github": (shape(b"gh", frozenset(b"pousr"), b"_"), shape(b"github_pat_")),
    "telegram": (shape(_DIGIT, _DIGIT, b":AA"),),
    "twilio": (shape(b"SK", *(_HEX,) * 4),),
    "hosting": (
        *literals(b"dapi", b"_v1_", b"sbp_", b"dp.pt.", b"dp.st.", b"dp.sa.", b"dp.ct."),
        *literals(b"dp.scim.", b"dp.audit."),
        shape(b"key-", *(_HEX,) * 4),
        shape(b"hv", frozenset(b"sbr"), b"."),
    ),
}


def _listed() -> Iterator[SecretRule]:
    """Yield the rules of `rules.toml`; a pattern may be written in pieces."""
    with open(__file__.removesuffix(".py") + ".toml", "rb") as file:
        listed = tomllib.load(file)
    for name, one in listed.items():
        pattern, guard = ("".join(one[face]).encode() for face in ("pattern", "guard"))
        shapes = _SHAPES.get(name) or literals(*(word.encode() for word in one["contains"]))
        check = is_random if one.get("check") == "is_random" else None
        yield SecretRule(name, one["finds"], pattern, guard, shapes, check)


SECRET_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "pem",
        "private keys in PEM form (RSA, EC, OpenSSH, PGP …)",
        rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:[A-Za-z0-9+/=\s:,.()]|-[A-Za-z0-9])*"
        rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        rb"PRIVATE KEY",
        literals(b"PRIVATE KEY"),
    ),
    SecretRule(
        "putty",
        "private keys of PuTTY (`PuTTY-User-Key-File-…`)",
        rb"PuTTY-User-Key-File-[0-9]{1,2}:[^\n\r\"\x00]{0,100}"
        + _PUTTY_LINES
        + rb"|\bPrivate-Lines: ?[0-9]{1,4}"
        + _PUTTY_LINES,
        rb"PuTTY-User-Key-File-|Private-Lines:",
        literals(b"PuTTY-User-Key-File-", b"Private-Lines:"),
    ),
    *_listed(),
    SecretRule(
        "basic",
        "the value of an `Authorization: Basic` header",
        rb"(?i)\bbasic[ \t]+([A-Za-z0-9+/\-_]{8,}={0,2})",
        rb"(?i)basic(?:[ \t]|\\+t)+[A-Za-z0-9+/\-_\\]{8}",
        ((*any_case(b"basic"), _BLANK),),
        is_basic_credentials,
    ),
    SecretRule(
        "bearer",
        "the value of an `Authorization: Bearer` header, and of other one-word schemes",
        rb"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/\-]{16,}=*)"
        rb"""|(?i:authorization)["'`]?\s*[:=]\s*["'`]?[A-Za-z\-]{3,20}[ \t]+"""
        rb"([A-Za-z0-9._~+/\-]{16,}=*)",
        rb"(?i:bearer)[ \t\\]|(?i:authorization)" + _GAP + rb"[:=]",
        ((*any_case(b"bearer"), _BLANK), (*any_case(b"authorization"), _AFTER_NAME)),
        is_random,
    ),
    SecretRule(
        "url-userinfo",
        "the password in a URL (`postgres://user:…@host`)",
        rb"""://[^\x00-\x20/:@"'<>\\`]*:([^\x00-\x20/"'<>\\`]+)@""",
        rb"""(?::|u003[aA])(?:\\*/){2}[^\x00-\x20/:@"]*:[^\x00-\x20/"]+@""",
        (shape(b":", frozenset(b"/\\"), frozenset(b"/\\")),),  # `:\/\/` as PHP writes it
        is_password_in_url,
    ),
    SecretRule(
        "cookie-header",
        "the values of `Cookie` and `Set-Cookie` headers",
        rb"""(?i)\b(?:set-)?cookie["']?[ \t]*[:=][ \t]*["']?"""
        rb"""([A-Za-z0-9_.\-]+=[^\x00-\x1f"'\\<>]{8,})""",
        rb"(?i)cookie" + _GAP + rb"[:=]",
        ((*any_case(b"cookie"), _AFTER_NAME),),
        is_random,
    ),
    SecretRule(
        "flag",
        "command-line arguments that follow a name such as `--api-key`",
        rb"--(?P<key>[A-Za-z0-9\-]*"
        + KEYWORD
        + rb""")(?:\s+["']?|["']\s*,\s*["'])([^\s"'\\`,\x00]{8,})""",
        rb"--[A-Za-z0-9\-]*" + KEYWORD + rb"""[\s"'\\]""",
        _NAME_SHAPES,
        is_assigned_secret,
    ),
    SecretRule(
        "curl-user",
        "the password in `curl -u user:…`",
        rb"""\bcurl\b[^\n\x00]*?[\s"',](?:-u|--user|-U|--proxy-user)(?:[ \t=]+|["']\s*,\s*)["']?"""
        rb"""[^\s:"'\\\x00]*:([^\s"'\\<>`,\x00]{3,})""",
        rb"""-(?:u|-user|U|-proxy-user)(?:[\s"'=,\\]|\\[nrt]|\\u00[0-9a-fA-F]{2})+[^\s:"'\\\x00]*:""",
        literals(b"curl"),
        is_password_in_url,
    ),
    SecretRule(
        "header-pair",
        'a value beside its name: `["x-api-key", "…"]`, `{"name": "x-api-key", "value": "…"}`',
        rb"""["'`](?P<key>[A-Za-z0-9_.\-]*"""
        + KEYWORD
        + rb""")["'`]\s*(?:,\s*(?:["'`]value["'`]\s*:\s*)?|:\s*\{\s*["'`]value["'`]\s*:\s*)"""
        + _SCHEME_AND_VALUE,
        KEYWORD + _QUOTE + _GAP + rb"(?:,|:" + _GAP + rb"\{)",
        _NAME_SHAPES,
        is_assigned_secret,
    ),
    SecretRule(
        "named-list",
        'the values of a list under a telling name (`"api_keys": ["…", "…"]`)',
        rb"(?P<key>[A-Za-z0-9_.\-]*"
        + KEYWORD
        + rb""")(?i:s)?["'`]?\s*(?:=>|[=:])\s*(\[[^\[\]{}]*)""",
        KEYWORD + rb"(?i:s)?" + _GAP + rb"(?:[:=>\\]|u003[adeADE])+" + _GAP + rb"\[",
        (*_NAME_SHAPES, *_NAMES_SHAPES),
        is_assigned_secret,
        is_list=True,
    ),
    SecretRule(
        "assignment",
        'values under a telling name (`api_key=…`, `"password": "…"`, `DB_SECRET: …`)',
        rb"(?P<key>[A-Za-z0-9_.\-]*"
        + KEYWORD
        + rb""")["'`]?\s*(?::=|=>|=|:|>)\s*"""
        + rb"""(?:"((?:[^"\\\s\x00]|\\[^\s\x00]){8,})"|[bBuU]?['`]([^"'`\\\s\x00]{8,})['`]|("""
        + _VALUE
        + rb"{8,})(?:[^("
        + _VALUE[1:]
        + rb"|\z))",  # a name before `(` is called, not assigned
        KEYWORD + _GAP + rb"(?:[:=>]|u003[adeADE])",
        _NAME_SHAPES,
        is_assigned_secret,
    ),
)

# For the compiler's policy (a rule may ask for these before an external call), never for ingest:
# an e-mail address in a trace is usually what the trace is about.
PII_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "email",
        "e-mail addresses",
        rb"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}",
        rb"@[A-Za-z0-9]",
        (shape(_TOKEN | {0x25, 0x2B}, b"@", _TOKEN, _TOKEN, _TOKEN),),
    ),
    SecretRule(
        "phone",
        "international telephone numbers (`+49 30 …`)",
        rb"\+[0-9](?:[ ()./\-]{0,2}[0-9]){7,14}",
        rb"\+[0-9]",
        (shape(b"+", _DIGIT, _DIGIT | frozenset(b" ()./-"), _DIGIT | frozenset(b" ()./-")),),
    ),
)

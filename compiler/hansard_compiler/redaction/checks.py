"""Is it a secret? What no pattern matches: names that announce one, and values random enough."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

import re2

# --- Names under which secrets stand ------------------------------------------------------------

# Shared by assignments, command-line flags and attribute keys, so that their guards cannot drift
# from what `is_sensitive_key` accepts. The name must end here: `max_tokens`, `api_key_hash` and
# `password_length` are not secrets.
KEYWORD = (
    rb"(?i:passw(?:or)?d|passphrase|passcode|pwd|secret|credentials?|authorization|cookie|token"
    rb"|(?:api|access|private|secret|signing|encryption|account|auth|master|shared|subscription"
    rb"|admin|service|storage|app|license|deploy|hmac)[_\-. ]?key)(?:[_\-]?[0-9]{1,2})?"
)
_SENSITIVE_KEY = rb"(?s:.*)" + KEYWORD
# Words that make a "token" a piece of text, a position in a list or a public name.
_HARMLESS_TOKEN = (
    rb"(?i:page|next|prev|previous|continuation|cursor|sync|max|min|num|prompt|completion|input"
    rb"|output|total|eos|bos|pad|unk|mask|sep|cls|stop|start|end|first|last|special|per|new|cancellation)"
    rb"[_\-. ]?token"
)


def latin1() -> re2.Options:
    """Return options for matching bytes as they are, UTF-8 or not."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options


_LATIN1 = latin1()
_KNOWN_BYTES = 100  # names that are remembered: programs use few, and short ones
_sensitive_key = re2.compile(_SENSITIVE_KEY, options=_LATIN1)
_harmless_token = re2.compile(rb"(?s:.*)" + _HARMLESS_TOKEN, options=_LATIN1)


def is_sensitive_key(key: bytes) -> bool:
    """Return whether a name announces a secret: `OPENAI_API_KEY`, `db.password`, `x-auth-token`."""
    return _known(key) if len(key) <= _KNOWN_BYTES else _announces(key)


@lru_cache(maxsize=2048)
def _known(key: bytes) -> bool:
    return _announces(key)


def _announces(key: bytes) -> bool:
    return bool(_sensitive_key.fullmatch(key)) and not _harmless_token.fullmatch(key)


# --- Is it random enough? -----------------------------------------------------------------------

_SAMPLE_BYTES = 4096
_PLACEHOLDER_STARTS = (b"${", b"$(", b"{", b"<", b"%(", b"[", b"***", b"...", b"x" * 3, b"X" * 3)
_PLACEHOLDERS = frozenset(
    {b"password", b"pass", b"passwd", b"pwd", b"secret", b"changeme", b"redacted"}
)
_LEAST_LETTERS, _MOST_LETTERS = 12, 128
# The commonest pairs of letters in sources of programs: six in seven of all.
_COMMON_PAIRS = frozenset(
    b"ab ac ad ag ai al am an ap ar as at au ay ba bl ca ce ch ck cl co ct da de di do ea ec ed ee"
    b" ef el em en ep eq er es et ex fa fi fo fr ge ha he hi ho ic id ie ig il im in io is it ke la"
    b" ld le lf li ll lo ls lt lu ma me mi mo mp na nc nd ne nf ng ni no ns nt nu oc od ol om on oo"
    b" op or os ot ou ow pa pe pl po pr pt py qu ra re rg ri rn ro rr rs rt ru ry sc se sh si so sp"
    b" ss st su ta te th ti to tr ts tt tu ty ua ue ul um un ur us ut va ve wi xt yp".split()
)
_JOINERS = bytes.maketrans(b"-./=:", b"_____")  # what code and prose put between words
# Letters that are not Latin are letters, too, and bytes from 128 up.
_word = re2.compile(rb"[A-Za-z\x80-\xff]*[0-9]?", options=_LATIN1)
_word_among_words = re2.compile(rb"[A-Za-z\x80-\xff]*[0-9]{0,3}", options=_LATIN1)
_escaped = re.compile(rb"\\+u([0-9a-fA-F]{4})")  # of any depth
_variable = re2.compile(rb"\$[A-Za-z_][A-Za-z0-9_]*", options=_LATIN1)
_json_number = re2.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?", options=_LATIN1)


def _entropy(value: bytes) -> float:
    """Return the Shannon entropy in bits a byte: 3.0 for 8 different bytes."""
    sample = value[:_SAMPLE_BYTES]
    shares = [n / len(sample) for n in Counter(sample).values()]
    return -sum(share * math.log2(share) for share in shares)


def looks_random(value: bytes, *, at_least_bytes: int = 8) -> bool:
    """Return whether a value has letters and digits and repeats itself as little as a key does."""
    if len(value) < at_least_bytes or _is_placeholder(value):
        return False
    if not any(48 <= byte <= 57 for byte in value) or not any(byte >= 65 for byte in value):
        return False
    if _json_number.fullmatch(value):  # 12e45 in a JSON text must stay a number
        return False
    return _entropy(value) >= 3.0


def is_random(value: bytes, _key: bytes) -> bool:
    return looks_random(value)


def is_assigned_secret(value: bytes, key: bytes) -> bool:
    """Judge a value by the name it is assigned to; words of code and prose are not secrets.

    A bare `token` names so many harmless things (a word of a tokenizer, a csrf field) that its
    value must be longer.
    """
    if not is_sensitive_key(key) or b"://" in value:
        return False
    value = _without_escapes(value)
    at_least = 16 if key.lower() == b"token" else 8
    if value.isalpha():
        return len(value) >= at_least and _is_random_letters(value)
    return looks_random(value, at_least_bytes=at_least) and not _is_made_of_words(value)


def _is_random_letters(value: bytes) -> bool:
    """Return whether Latin letters of both cases stand in no order that words have.

    `getAWSAccessKeyId` changes its case as often as a key does, so pairs of letters decide. By
    measurement, 93 in 100 of 16 random letters are known, and 6 in 1,000 of the longer names in
    sources of programs (`glBufferData`) are taken for random.
    """
    if not _LEAST_LETTERS <= len(value) <= _MOST_LETTERS:
        return False
    changes = sum(one != other for one, other in pairwise(byte < 97 for byte in value))
    letters = value.lower()
    common = sum(letters[at : at + 2] in _COMMON_PAIRS for at in range(len(letters) - 1))
    return 4 * changes >= len(value) and 20 * common < 9 * (len(letters) - 1)


def _without_escapes(value: bytes) -> bytes:
    """Return a value as its reader sees it: the digits of `\\u0442` are no digits of a key."""
    if b"\\u" not in value:
        return value
    return _escaped.sub(_letter, value)


def _letter(found: re.Match[bytes]) -> bytes:
    return chr(int(found[1], 16)).encode("utf-8", "surrogatepass")


def _is_placeholder(value: bytes) -> bool:
    return value.startswith(_PLACEHOLDER_STARTS) or bool(_variable.fullmatch(value))


def _is_made_of_words(value: bytes) -> bool:
    """Recognise `settings.api_key_v2`, `sha256-cache` and `encoder1`, but not `Password123`."""
    parts = value.translate(_JOINERS).split(b"_")
    word = _word_among_words if len(parts) > 1 else _word
    return all(word.fullmatch(part) for part in parts)


def is_password_in_url(value: bytes, _key: bytes) -> bool:
    if value.lower() in _PLACEHOLDERS or _is_placeholder(value):
        return False
    return len(value) >= 3 and any(48 <= byte < 127 for byte in value.strip(b"x"))


def is_basic_credentials(value: bytes, _key: bytes) -> bool:
    try:
        decoded = base64.b64decode(value + b"=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode("ascii").isprintable()

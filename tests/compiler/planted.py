"""Secrets of every rule, made up on the spot, and the disguises a text may give them."""

from __future__ import annotations

import base64
import json
import re
import string
from dataclasses import dataclass

from hypothesis import strategies as st

_LOWER = string.ascii_lowercase
_UPPER = string.ascii_uppercase
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_URL_SAFE = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"


@dataclass(frozen=True, slots=True)
class Planted:
    """A text with a secret in it: `secret` must be gone afterwards, `text` is how it is written."""

    rule: str
    text: str
    secret: str


def _of(alphabet: str, length: int, more: int = 10) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=length, max_size=length + more)


def _exactly(alphabet: str, length: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=length, max_size=length)


def _joined(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    made = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*made).map("".join)


def _random(length: int = 20) -> st.SearchStrategy[str]:
    """No character twice, and a digit among letters: what the checks take for a key."""
    return st.permutations(_ALNUM).map(lambda order: "k7" + "".join(order[: length - 3]) + "Z")


def _pem(kind: str) -> st.SearchStrategy[str]:
    lines = st.lists(_exactly(_BASE64, 64), min_size=1, max_size=4).map("\n".join)
    return _joined(f"-----BEGIN {kind}-----\n", lines, f"=\n-----END {kind}-----")


def _alone(rule: str, *shapes: st.SearchStrategy[str]) -> st.SearchStrategy[Planted]:
    return st.one_of(*shapes).map(lambda secret: Planted(rule, secret, secret))


@st.composite
def _within(draw: st.DrawFn, rule: str, secret: st.SearchStrategy[str], *frames: str) -> Planted:
    made = draw(secret)
    return Planted(rule, draw(st.sampled_from(frames)).replace("@@", made), made)


_JWT_PART = _of(_URL_SAFE, 12)
_BASIC = st.tuples(_of(_LOWER, 3), _of(_ALNUM, 6)).map(
    lambda pair: base64.b64encode(":".join(pair).encode()).decode()
)

SECRETS: dict[str, st.SearchStrategy[Planted]] = {
    "pem": _alone(
        "pem",
        *(_pem(f"{kind}PRIVATE KEY") for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")),
        _pem("PGP PRIVATE KEY BLOCK"),
    ),
    "putty": _alone(
        "putty",
        _joined(
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me@work\n",
            "Public-Lines: 1\n",
            _exactly(_BASE64, 64),
            "\nPrivate-Lines: 1\n",
            _exactly(_BASE64, 48),
            "\nPrivate-MAC: ",
            _exactly(_HEX, 64),
        ),
    ),
    "fireworks": _alone("fireworks", _joined("fw_", _random(24))),
    "hansard": st.one_of(
        _alone("hansard", _joined("hst_", _exactly(_URL_SAFE, 43))),
        _within(
            "hansard",
            _exactly(_URL_SAFE, 43),
            "http://127.0.0.1:4318/signin/link/@@",
            "open /signin/link/@@?next=/approvals",
        ),
    ),
    "anthropic": _alone("anthropic", _joined("sk-ant-api03-", _of(_URL_SAFE, 24))),
    "openrouter": _alone("openrouter", _joined("sk-or-v1-", _exactly(_HEX, 64))),
    "openai": _alone("openai", _joined(st.sampled_from(["sk-", "sk-proj-"]), _random())),
    "groq": _alone("groq", _joined("gsk_", _of(_ALNUM, 52))),
    "xai": _alone("xai", _joined("xai-", _of(_ALNUM, 60))),
    "perplexity": _alone("perplexity", _joined("pplx-", _of(_ALNUM, 40))),
    "huggingface": _alone(
        "huggingface", _joined(st.sampled_from(["hf_", "api_org_"]), _exactly(_ALNUM, 34))
    ),
    "replicate": _alone("replicate", _joined("r8_", _exactly(_ALNUM, 37))),
    "nvidia": _alone("nvidia", _joined("nvapi-", _of(_URL_SAFE, 60))),
    "langsmith": _alone(
        "langsmith", _joined("lsv2_pt_", _exactly(_HEX, 32), "_", _exactly(_HEX, 10))
    ),
    "agent-tools": _alone(
        "agent-tools",
        _joined("tvly-dev-", _of(_ALNUM, 24)),
        _joined("e2b_", _exactly(_HEX, 40)),
        _joined("pcsk_", _of(_ALNUM, 50)),
    ),
    "google-api": _alone("google-api", _joined("AIza", _exactly(_URL_SAFE, 35))),
    "google-oauth": _alone(
        "google-oauth", _joined("ya29.", _of(_URL_SAFE, 40)), _joined("GOCSPX-", _of(_URL_SAFE, 28))
    ),
    "aws-access": _alone(
        "aws-access",
        _joined(st.sampled_from(["AKIA", "ASIA"]), _exactly(_UPPER + "234567", 16)),
    ),
    "aws-bedrock": _alone("aws-bedrock", _joined("ABSK", _of(_BASE64, 110), "=")),
    "azure-client": _alone(
        "azure-client", _joined(_exactly(_ALNUM, 3), "8Q~", _of(_ALNUM + "_.-~", 31, 3))
    ),
    "azure-sas": _within(
        "azure-sas", _of(_ALNUM, 43), "https://a.blob.core.windows.net/c?sv=1&sig=@@&se=2"
    ),
    "github": _alone(
        "github",
        _joined("gh", st.sampled_from("pousr"), "_", _exactly(_ALNUM, 36)),
        _joined("github_pat_", _exactly(_ALNUM, 22), "_", _exactly(_ALNUM, 59)),
    ),
    "gitlab": _alone("gitlab", _joined("glpat-", _of(_URL_SAFE, 20))),
    "slack": _alone(
        "slack",
        _joined("xox", st.sampled_from("abprs"), "-", _of(string.digits, 11), "-", _of(_ALNUM, 24)),
        _joined("xapp-1-", _of(_ALNUM, 24)),
    ),
    "chat-webhook": _within(
        "chat-webhook",
        _joined("T", _of(_ALNUM, 8), "B", _of(_ALNUM, 8), _of(_ALNUM, 24)),
        "https://hooks.slack.com/services/@@",
        "https://discord.com/api/webhooks/@@",
    ),
    "telegram": _alone("telegram", _joined(_exactly(string.digits, 10), ":AA", _of(_ALNUM, 33))),
    "stripe": _alone(
        "stripe",
        _joined(st.sampled_from(["sk_live_", "rk_test_"]), _of(_ALNUM, 24)),
        _joined("whsec_", _of(_ALNUM, 32)),
    ),
    "sendgrid": _alone("sendgrid", _joined("SG.", _of(_URL_SAFE, 22), ".", _of(_URL_SAFE, 43))),
    "twilio": _alone("twilio", _joined("SK", _exactly(_HEX, 32))),
    "packages": _alone(
        "packages",
        _joined("npm_", _exactly(_ALNUM, 36)),
        _joined("pypi-AgEIcHlwaS5vcmc", _of(_URL_SAFE, 60)),
        _joined("dckr_pat_", _of(_URL_SAFE, 27)),
    ),
    "hosting": _alone(
        "hosting",
        _joined("dapi", _exactly(_HEX, 32)),
        _joined("dop_v1_", _exactly(_HEX, 64)),
        _joined("hvs.", _of(_URL_SAFE, 30)),
        _joined("sbp_", _exactly(_HEX, 40)),
        _joined("key-", _exactly(_HEX, 32)),
        _joined("dp.", st.sampled_from(["pt", "st.dev_eu"]), ".", _exactly(_ALNUM, 43)),
    ),
    "workplace": _alone(
        "workplace",
        _joined("ntn_", _of(_ALNUM, 46)),
        _joined("figd_", _of(_URL_SAFE, 40)),
        _joined("lin_api_", _of(_ALNUM, 40)),
        _joined("shpat_", _exactly(_HEX, 32)),
        _joined("ATATT3", _of(_URL_SAFE, 60)),
    ),
    "age": _alone("age", _joined("AGE-SECRET-KEY-1", _exactly(_UPPER + string.digits, 58))),
    "jwt": _alone("jwt", _joined("eyJ", _JWT_PART, ".eyJ", _JWT_PART, ".", _of(_URL_SAFE, 30))),
    "bearer": _within("bearer", _random(), "Authorization: Bearer @@", "bearer @@"),
    "basic": _within("basic", _BASIC, "Authorization: Basic @@", "basic @@"),
    "url-userinfo": _within(
        "url-userinfo", _random(length=10), "postgres://app:@@@db/x", "https://:@@@h.example/"
    ),
    "cookie-header": _within(
        "cookie-header", _random(), "Cookie: session=@@; theme=dark", "Set-Cookie: id=@@; Path=/"
    ),
    "flag": _within(
        "flag", _random(), "run --api-key @@ --fast", "run --db-password '@@'", "x --auth-token\t@@"
    ),
    "curl-user": _within(
        "curl-user",
        _random(),
        "curl -u me:@@ https://x",
        "curl -X POST --user 'me:@@' https://x",
        '["curl", "-s", "-u", "me:@@"]',
    ),
    "header-pair": _within(
        "header-pair",
        _random(),
        '[["x-api-key", "@@"], ["accept", "x"]]',
        '[{"name": "x-api-key", "value": "@@"}]',
        '[{"key":"Authorization","value":"Token @@"}]',
        '["x-api-key","@@","accept","*/*"]',
        "[(b'x-api-key', b'@@')]",
        '{"api_key": {"value": "@@"}}',
    ),
    "named-list": _within(
        "named-list",
        _random(),
        '{"api_keys": ["@@"]}',
        '{"password":["a","@@","b"]}',
        "tokens = ['@@']",
    ),
    "assignment": _within(
        "assignment",
        _random(),
        "OPENAI_API_KEY=@@",
        "api_key: @@",
        'password = "@@"',
        "{'client_secret': '@@'}",
        "{b'x-api-key': b'@@'}",
        '{"access_token":"@@","n":1}',
        "<Password>@@</Password>",
        "aws_secret_access_key = @@",
        "?apikey=@@&page=2",
    ),
}


def secrets() -> st.SearchStrategy[Planted]:
    """A secret of any rule."""
    return st.one_of(*SECRETS.values())


# --- Disguises ----------------------------------------------------------------------------------

_NEIGHBOURS = st.text(st.sampled_from(" \n\t,;.()…é日\U0001f600\"'{}[]\\"), max_size=4)
_PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="‹"), max_size=30)


def _escape_every(text: str, chosen: list[bool]) -> str:
    """Write some characters as the escapes that no encoder needs and every decoder reads."""
    flags = chosen * (len(text) // len(chosen) + 1)
    return "".join(
        f"\\u{ord(char):04x}" if escape and ord(char) < 0x80 else json.dumps(char)[1:-1]
        for char, escape in zip(text, flags, strict=False)
    )


@st.composite
def json_texts(draw: st.DrawFn, text: str) -> str:
    """A JSON text that holds `text` once, as a value or as a key, escaped in any legal way."""
    style = draw(st.sampled_from(["ascii", "unicode", "slashes", "html", "every"]))
    if style == "every":
        chosen = draw(st.lists(st.booleans(), min_size=1, max_size=7))
        literal = f'"{_escape_every(text, chosen)}"'
    else:
        literal = json.dumps(text, ensure_ascii=style != "unicode")
    if style == "slashes":
        literal = literal.replace("/", "\\/")
    if style == "html":
        for char in "<>&'":
            literal = literal.replace(char, f"\\u{ord(char):04x}")
    return draw(
        st.sampled_from(
            ["@@", "[1, @@, null]", '{"a": {"text": @@}, "b": 2}', "{@@: true}", "[[@@]]"]
        )
    ).replace("@@", literal)


@st.composite
def base64_texts(draw: st.DrawFn, text: str) -> str:
    """Base64 of a text that begins or ends with something else, at any of the three offsets."""
    before = draw(st.sampled_from(["", " ", "  ", "a: ", '{"x":"']))
    data = (before + text + draw(st.sampled_from(["", "\n", '"}']))).encode()
    encoded = draw(st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]))(data).decode()
    if draw(st.booleans()):
        encoded = encoded.rstrip("=")
    width = draw(st.sampled_from([0, 0, 64, 76]))
    if width:
        encoded = "\n".join(encoded[i : i + width] for i in range(0, len(encoded), width))
    return draw(st.sampled_from(["@@", "data:text/plain;base64,@@", "see /@@ there"])).replace(
        "@@", encoded
    )


@st.composite
def disguised(draw: st.DrawFn, *, layers: int = 3) -> Planted:
    """A planted secret in any surroundings, inside JSON inside JSON, at most once in base64."""
    planted = draw(secrets())
    text = draw(_PROSE) + draw(_NEIGHBOURS.map(lambda s: s + " ")) + planted.text
    text += draw(st.sampled_from(["", " ", "\n", ", "])) + draw(_PROSE.map(lambda s: s and " " + s))
    wrapped_in_base64 = False
    for _ in range(draw(st.integers(0, layers))):
        if not wrapped_in_base64 and draw(st.booleans()):
            text, wrapped_in_base64 = draw(base64_texts(text)), True
        else:
            text = draw(json_texts(text))
    return Planted(planted.rule, text, planted.secret)


def reveals(text: str, secret: str) -> bool:
    """Say whether a reader who undoes escapes and base64 could still read the secret."""
    seen, front = set(), [text]
    while front:
        view = front.pop()
        if view in seen:
            continue
        seen.add(view)
        if secret in view:
            return True
        front.extend(_readings(view))
    return False


def _readings(text: str) -> list[str]:
    readings = []
    if "\\" in text:
        readings.append(_unescape(text))
    for word in text.replace("\n", "").replace(",", " ").replace("/", " / ").split():
        core = "".join(char for char in word if char in _URL_SAFE + "+")
        for skipped in range(4):
            chunk = core[skipped:].replace("-", "+").replace("_", "/")
            chunk = chunk[: len(chunk) - (len(chunk) % 4 == 1)]
            if len(chunk) >= 12:
                padded = chunk + "=" * (-len(chunk) % 4)
                readings.append(base64.b64decode(padded).decode("utf-8", "replace"))
    return readings


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "/": "/", '"': '"', "\\": "\\"}


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _SHORT.get(found[2], found[0]), text
    )

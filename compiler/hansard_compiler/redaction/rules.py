"""What a secret looks like: one row a rule, matched by google-re2, hence in linear time.

A rule has three faces, and the second and third must be wider than the first:

- ``pattern`` finds the secret in plain text (UTF-8 bytes, LATIN1 rules, ``\\b`` is ASCII). The
  secret is the whole match, or its one group (other than ``key``) that took part.
- ``guard`` finds the same text under any depth of ordinary JSON escaping, inside the raw bytes of
  a request. No ``\\b``: the length byte before a protobuf string is often a letter. It may fire
  for nothing, which costs a closer look; it may never stay silent on a secret.
- ``shapes`` are byte sequences one of which every match contains: `redaction_guards` turns them
  into what they look like inside base64.

No secret may contain a bare double quote, so that cutting it out of a JSON text leaves JSON.
Rule names stand in markers, before a colon: none ends in a `KEYWORD`, or markers would look like
assignments.
"""

from __future__ import annotations

from collections.abc import Callable
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
class Rule:
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
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
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

SECRET_RULES: tuple[Rule, ...] = (
    Rule(
        "pem",
        "private keys in PEM form (RSA, EC, OpenSSH, PGP …)",
        rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:[A-Za-z0-9+/=\s:,.()]|-[A-Za-z0-9])*"
        rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        rb"PRIVATE KEY",
        literals(b"PRIVATE KEY"),
    ),
    Rule(
        "putty",
        "private keys of PuTTY (`PuTTY-User-Key-File-…`)",
        rb"PuTTY-User-Key-File-[0-9]{1,2}:[^\n\r\"\x00]{0,100}"
        + _PUTTY_LINES
        + rb"|\bPrivate-Lines: ?[0-9]{1,4}"
        + _PUTTY_LINES,
        rb"PuTTY-User-Key-File-|Private-Lines:",
        literals(b"PuTTY-User-Key-File-", b"Private-Lines:"),
    ),
    Rule(
        "hansard",
        "Hansard's own tokens and the codes of its sign-in links (`hst_…`, `/signin/link/…`)",
        rb"\bhst_[A-Za-z0-9_\-]{32,}|\bsignin/link/([A-Za-z0-9_\-]{32,})",
        rb"hst_[A-Za-z0-9_\-]{8}|signin[/\\]",
        literals(b"hst_", b"signin/link/"),
    ),
    Rule(
        "anthropic",
        "Anthropic API keys and OAuth tokens (`sk-ant-…`)",
        rb"\bsk-ant-[A-Za-z0-9_\-]{20,}",
        rb"sk-ant-",
        literals(b"sk-ant-"),
    ),
    Rule(
        "openrouter",
        "OpenRouter keys (`sk-or-…`)",
        rb"\bsk-or-[A-Za-z0-9_\-]{20,}",
        rb"sk-or-",
        literals(b"sk-or-"),
    ),
    Rule(
        "openai",
        "OpenAI keys and the many that copy their form (`sk-…`, `sk-proj-…`)",
        rb"\bsk-[A-Za-z0-9_\-]{20,}",
        rb"sk-[A-Za-z0-9_\-]{16}",
        literals(b"sk-"),
        is_random,
    ),
    Rule(
        "groq",
        "Groq keys (`gsk_…`)",
        rb"\bgsk_[A-Za-z0-9]{40,}",
        rb"gsk_[A-Za-z0-9]{8}",
        literals(b"gsk_"),
    ),
    Rule(
        "xai",
        "xAI keys (`xai-…`)",
        rb"\bxai-[A-Za-z0-9]{40,}",
        rb"xai-[A-Za-z0-9]{8}",
        literals(b"xai-"),
    ),
    Rule(
        "perplexity",
        "Perplexity keys (`pplx-…`)",
        rb"\bpplx-[A-Za-z0-9]{32,}",
        rb"pplx-",
        literals(b"pplx-"),
    ),
    Rule(
        "huggingface",
        "Hugging Face tokens (`hf_…`, `api_org_…`)",
        rb"\b(?:hf|api_org)_[A-Za-z0-9]{30,}",
        rb"(?:hf|api_org)_[A-Za-z0-9]{16}",
        literals(b"hf_", b"api_org_"),
    ),
    Rule(
        "replicate",
        "Replicate tokens (`r8_…`)",
        rb"\br8_[A-Za-z0-9]{30,}",
        rb"r8_[A-Za-z0-9]{16}",
        literals(b"r8_"),
    ),
    Rule(
        "fireworks",
        "Fireworks keys (`fw_…`)",
        rb"\bfw_[A-Za-z0-9]{20,}",
        rb"fw_[A-Za-z0-9]{16}",
        literals(b"fw_"),
        is_random,
    ),
    Rule(
        "nvidia",
        "NVIDIA keys (`nvapi-…`)",
        rb"\bnvapi-[A-Za-z0-9_\-]{40,}",
        rb"nvapi-",
        literals(b"nvapi-"),
    ),
    Rule(
        "langsmith",
        "LangSmith keys (`lsv2_pt_…`, `lsv2_sk_…`)",
        rb"\blsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}",
        rb"lsv2_",
        literals(b"lsv2_"),
    ),
    Rule(
        "agent-tools",
        "Tavily, E2B and Pinecone keys (`tvly-…`, `e2b_…`, `pcsk_…`)",
        rb"\b(?:tvly-[A-Za-z0-9\-]{20,}|e2b_[0-9a-f]{40,}|pcsk_[A-Za-z0-9_]{40,})",
        rb"tvly-|e2b_[0-9a-f]{8}|pcsk_",
        literals(b"tvly-", b"e2b_", b"pcsk_"),
    ),
    Rule(
        "google-api",
        "Google API keys (`AIza…`)",
        rb"\bAIza[A-Za-z0-9_\-]{35,}",
        rb"AIza[A-Za-z0-9_\-]{16}",
        literals(b"AIza"),
    ),
    Rule(
        "google-oauth",
        "Google OAuth access tokens and client secrets (`ya29.…`, `GOCSPX-…`)",
        rb"\b(?:ya29\.[A-Za-z0-9_\-]{20,}|GOCSPX-[A-Za-z0-9_\-]{20,})",
        rb"ya29\.|GOCSPX-",
        literals(b"ya29.", b"GOCSPX-"),
    ),
    Rule(
        "aws-access",
        "AWS access key ids (`AKIA…`, `ASIA…`)",
        rb"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8}",
        literals(b"AKIA", b"ASIA", b"ABIA", b"ACCA"),
    ),
    Rule(
        "aws-bedrock",
        "Amazon Bedrock API keys (`ABSK…`, `bedrock-api-key-…`)",
        rb"\b(?:ABSK[A-Za-z0-9+/]{100,}={0,2}|bedrock-api-key-[A-Za-z0-9+/]{20,}={0,2})",
        rb"ABSK[A-Za-z0-9+/\\]{16}|bedrock-api-key-",
        literals(b"ABSK", b"bedrock-api-key-"),
    ),
    Rule(
        "azure-client",
        "Azure AD client secrets (`…8Q~…`)",
        rb"\b[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,}",
        rb"[0-9]Q~[A-Za-z0-9_~.\-]{8}",
        (shape(_TOKEN, _TOKEN, _TOKEN, _DIGIT, b"Q~", _TOKEN, _TOKEN, _TOKEN, _TOKEN),),
    ),
    Rule(
        "azure-sas",
        "signatures of Azure shared-access URLs (`sig=…`)",
        rb"\bsig=([A-Za-z0-9%+/\-_]{40,}={0,2})",
        rb"sig=",
        literals(b"sig="),
    ),
    Rule(
        "github",
        "GitHub tokens (`ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`)",
        rb"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
        rb"gh[pousr]_[A-Za-z0-9]{8}|github_pat_",
        (shape(b"gh", frozenset(b"pousr"), b"_"), shape(b"github_pat_")),
    ),
    Rule(
        "gitlab",
        "GitLab tokens (`glpat-…` and its relatives)",
        rb"\bgl(?:pat|dt|ptt|rt|cbt|agent|oas|soat|imt|ft|ffct)-[A-Za-z0-9_\-]{20,}",
        rb"gl(?:pat|dt|ptt|rt|cbt|agent|oas|soat|imt|ft|ffct)-[A-Za-z0-9_\-]{8}",
        literals(
            *(b"glpat-", b"gldt-", b"glptt-", b"glrt-", b"glcbt-", b"glagent-"),
            *(b"gloas-", b"glsoat-", b"glimt-", b"glft-", b"glffct-"),
        ),
    ),
    Rule(
        "slack",
        "Slack tokens (`xoxb-…`, `xoxp-…`, `xapp-…`)",
        rb"\b(?:xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,}|xapp-[0-9]-[A-Za-z0-9\-]{10,})",
        rb"xox[abceoprs][.\-]|xapp-[0-9]",
        literals(b"xox", b"xapp-"),
    ),
    Rule(
        "chat-webhook",
        "Slack and Discord webhook URLs",
        rb"(?:hooks\.slack\.com/(?:services|workflows|triggers)"
        rb"|discord(?:app)?\.com/api/webhooks)/([A-Za-z0-9/_\-]{20,})",
        rb"hooks\.slack\.com|discord(?:app)?\.com",
        literals(b"hooks.slack.com", b"discord.com", b"discordapp.com"),
    ),
    Rule(
        "telegram",
        "Telegram bot tokens",
        rb"\b[0-9]{8,10}:AA[A-Za-z0-9_\-]{32,}",
        rb"[0-9]:AA[A-Za-z0-9_\-]{8}",
        (shape(_DIGIT, _DIGIT, b":AA"),),
    ),
    Rule(
        "stripe",
        "Stripe keys and webhook secrets (`sk_live_…`, `rk_live_…`, `whsec_…`)",
        rb"\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}={0,2})",
        rb"k_(?:live|test)_|whsec_",
        literals(b"k_live_", b"k_test_", b"whsec_"),
    ),
    Rule(
        "sendgrid",
        "SendGrid keys (`SG.…`)",
        rb"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}",
        rb"SG\.[A-Za-z0-9_\-]{8}",
        literals(b"SG."),
    ),
    Rule(
        "twilio",
        "Twilio API keys (`SK` and 32 hex digits)",
        rb"\bSK[0-9a-f]{32}\b",
        rb"SK[0-9a-f]{16}",
        (shape(b"SK", *(frozenset(b"0123456789abcdef"),) * 4),),
    ),
    Rule(
        "packages",
        "npm, PyPI and Docker Hub tokens (`npm_…`, `pypi-…`, `dckr_pat_…`)",
        rb"\b(?:npm_[A-Za-z0-9]{36,}|pypi-[A-Za-z0-9_\-]{50,}|dckr_[po]at_[A-Za-z0-9_\-]{20,})",
        rb"npm_[A-Za-z0-9]{8}|pypi-[A-Za-z0-9_\-]{16}|dckr_",
        literals(b"npm_", b"pypi-", b"dckr_"),
    ),
    Rule(
        "hosting",
        "Databricks, DigitalOcean, Doppler, HashiCorp Vault, Mailgun and Supabase tokens",
        rb"\b(?:dapi[0-9a-f]{32}(?:-[0-9])?|do[opr]_v1_[0-9a-f]{40,}"
        rb"|hv[sbr]\.[A-Za-z0-9_\-]{24,}|sbp_[0-9a-f]{40,}|key-[0-9a-f]{32}\b"
        rb"|dp\.(?:pt|st|sa|ct|scim|audit)\.(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,44})",
        rb"dapi[0-9a-f]{8}|do[opr]_v1_|hv[sbr]\.[A-Za-z0-9_\-]{8}|sbp_[0-9a-f]{8}"
        rb"|key-[0-9a-f]{16}|dp\.(?:pt|st|sa|ct|scim|audit)\.",
        (
            *literals(b"dapi", b"_v1_", b"sbp_", b"dp.pt.", b"dp.st.", b"dp.sa.", b"dp.ct."),
            *literals(b"dp.scim.", b"dp.audit."),
            shape(b"key-", *(frozenset(b"0123456789abcdef"),) * 4),
            shape(b"hv", frozenset(b"sbr"), b"."),
        ),
    ),
    Rule(
        "workplace",
        "Notion, Linear, Shopify, Atlassian and Figma tokens",
        rb"\b(?:figd_[A-Za-z0-9_\-]{36,}|ntn_[A-Za-z0-9]{40,}|lin_(?:api|oauth)_[A-Za-z0-9]{32,}"
        rb"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}|ATATT3[A-Za-z0-9_=\-]{40,})",
        rb"figd_[A-Za-z0-9_\-]{8}|ntn_[A-Za-z0-9]{8}|lin_(?:api|oauth)_|shp(?:at|ca|pa|ss)_|ATATT3",
        literals(
            *(b"figd_", b"ntn_", b"lin_api_", b"lin_oauth_", b"ATATT3"),
            *(b"shpat_", b"shpca_", b"shppa_", b"shpss_"),
        ),
    ),
    Rule(
        "age",
        "age identities (`AGE-SECRET-KEY-1…`)",
        rb"\bAGE-SECRET-KEY-1[0-9A-Z]{40,}",
        rb"AGE-SECRET-KEY-",
        literals(b"AGE-SECRET-KEY-"),
    ),
    Rule(
        "jwt",
        "JSON web tokens, signed or encrypted (`eyJ….….…`)",
        rb"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"
        rb"(?:\.[A-Za-z0-9_\-]+){0,2}",
        rb"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8}",
        literals(b"eyJ"),
    ),
    Rule(
        "basic",
        "the value of an `Authorization: Basic` header",
        rb"(?i)\bbasic[ \t]+([A-Za-z0-9+/\-_]{8,}={0,2})",
        rb"(?i)basic(?:[ \t]|\\+t)+[A-Za-z0-9+/\-_\\]{8}",
        ((*any_case(b"basic"), _BLANK),),
        is_basic_credentials,
    ),
    Rule(
        "bearer",
        "the value of an `Authorization: Bearer` header, and of other one-word schemes",
        rb"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/\-]{16,}=*)"
        rb"""|(?i:authorization)["'`]?\s*[:=]\s*["'`]?[A-Za-z\-]{3,20}[ \t]+"""
        rb"([A-Za-z0-9._~+/\-]{16,}=*)",
        rb"(?i:bearer)[ \t\\]|(?i:authorization)" + _GAP + rb"[:=]",
        ((*any_case(b"bearer"), _BLANK), (*any_case(b"authorization"), _AFTER_NAME)),
        is_random,
    ),
    Rule(
        "url-userinfo",
        "the password in a URL (`postgres://user:…@host`)",
        rb"""://[^\x00-\x20/:@"'<>\\`]*:([^\x00-\x20/"'<>\\`]+)@""",
        rb"""(?::|u003[aA])(?:\\*/){2}[^\x00-\x20/:@"]*:[^\x00-\x20/"]+@""",
        (shape(b":", frozenset(b"/\\"), frozenset(b"/\\")),),  # `:\/\/` as PHP writes it
        is_password_in_url,
    ),
    Rule(
        "cookie-header",
        "the values of `Cookie` and `Set-Cookie` headers",
        rb"""(?i)\b(?:set-)?cookie["']?[ \t]*[:=][ \t]*["']?"""
        rb"""([A-Za-z0-9_.\-]+=[^\x00-\x1f"'\\<>]{8,})""",
        rb"(?i)cookie" + _GAP + rb"[:=]",
        ((*any_case(b"cookie"), _AFTER_NAME),),
        is_random,
    ),
    Rule(
        "flag",
        "command-line arguments that follow a name such as `--api-key`",
        rb"--(?P<key>[A-Za-z0-9\-]*"
        + KEYWORD
        + rb""")(?:\s+["']?|["']\s*,\s*["'])([^\s"'\\`,\x00]{8,})""",
        rb"--[A-Za-z0-9\-]*" + KEYWORD + rb"""[\s"'\\]""",
        _NAME_SHAPES,
        is_assigned_secret,
    ),
    Rule(
        "curl-user",
        "the password in `curl -u user:…`",
        rb"""\bcurl\b[^\n\x00]*?[\s"',](?:-u|--user|-U|--proxy-user)(?:[ \t=]+|["']\s*,\s*)["']?"""
        rb"""[^\s:"'\\\x00]*:([^\s"'\\<>`,\x00]{3,})""",
        rb"""-(?:u|-user|U|-proxy-user)(?:[\s"'=,\\]|\\[nrt]|\\u00[0-9a-fA-F]{2})+[^\s:"'\\\x00]*:""",
        literals(b"curl"),
        is_password_in_url,
    ),
    Rule(
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
    Rule(
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
    Rule(
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
PII_RULES: tuple[Rule, ...] = (
    Rule(
        "email",
        "e-mail addresses",
        rb"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}",
        rb"@[A-Za-z0-9]",
        (shape(_TOKEN | {0x25, 0x2B}, b"@", _TOKEN, _TOKEN, _TOKEN),),
    ),
    Rule(
        "phone",
        "international telephone numbers (`+49 30 …`)",
        rb"\+[0-9](?:[ ()./\-]{0,2}[0-9]){7,14}",
        rb"\+[0-9]",
        (shape(b"+", _DIGIT, _DIGIT | frozenset(b" ()./-"), _DIGIT | frozenset(b" ()./-")),),
    ),
)

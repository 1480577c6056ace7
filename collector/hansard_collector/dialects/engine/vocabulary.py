"""Words that dialects spell differently: roles, providers, finish reasons (rules 0.8 and 0.9).

The words are in `vocabulary.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

_KNOWN: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
)


def _by_word(kind: str) -> dict[str, str]:
    """Return the meaning of each word of a table that lists the words of a meaning."""
    return {word: meaning for meaning, words in _KNOWN[kind].items() for word in words}


MESSAGE_ROLES: Mapping[str, str] = _by_word("message_roles")
_FINISH_REASONS: Mapping[str, str] = _by_word("finish_reasons")
_NO_REASONS = frozenset(_KNOWN["no_finish_reasons"])
_PROVIDERS: Mapping[str, str] = _by_word("providers")
_FRAMEWORKS = frozenset(_KNOWN["frameworks"])
_MODEL_PREFIXES: Mapping[str, str] = _by_word("model_prefixes")
_MODEL_HOSTS = frozenset(_KNOWN["model_hosts"])
_HOSTS: Mapping[str, str] = _by_word("hosts")
_APIS = frozenset(_KNOWN["apis"])
_VERTEX = re.compile(r"[a-z0-9-]+-aiplatform\.googleapis\.com", re.ASCII)  # one a region
_BEDROCK = re.compile(r"bedrock[a-z-]*\.[a-z0-9.-]*amazonaws\.com(\.cn)?", re.ASCII)
# `https://user@host:4000/v1`: the host with its port is what is of interest.
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(?P<host>\[[0-9a-f:.]+\]|[^/:@\s]+)(?P<port>:\d+)?"
    r"(?:/\S*)?",
    re.ASCII,
)
_LONGEST_NAME = 200
_LOCAL = "localhost"
# Models that nobody but their maker sells, and clouds under the maker's name: a price by the name
# alone holds whatever stands between. Others are served by anybody, at home for nothing.
_SOLD_BY_NAME = frozenset({"anthropic", "gcp.gemini", "openai", "perplexity", "x_ai"})
_OPEN_WEIGHTS = ("gpt-oss", "whisper-1")


def message_role(role: str) -> str:
    """Return system, user, assistant or tool where the word means one of them, else the word."""
    known = MESSAGE_ROLES.get(role)
    if known is not None:
        return known
    word = role.rpartition(".")[2].lower()
    return MESSAGE_ROLES.get(word, word)


def finish_reason(raw: str) -> str | None:
    """Return one of stop, length, tool_call, content_filter, error, compaction, other.

    None where the text is no reason at all, such as the status `completed`.
    """
    word = raw.rpartition(".")[2].strip().lower().replace("-", "_")
    if word in _NO_REASONS:
        return None
    return _FINISH_REASONS.get(word, "other")


def provider(name: str) -> str | None:
    """Return the provider's name in OpenTelemetry's spelling; None for a framework's name."""
    return _provider(name) if len(name) <= _LONGEST_NAME else name.strip().lower()


@lru_cache(1024)
def _provider(name: str) -> str | None:
    """What `provider` returns.

    Vercel sends `openai.chat`: what follows the first dot is the API, unless the whole is a name.
    Of a host that is called, its provider; one that is nobody's known host stays whole.
    """
    word = name.strip().lower()
    if word in _PROVIDERS:
        return _PROVIDERS[word]
    if word in _FRAMEWORKS:
        return None
    head, _, rest = word.partition(".")
    if rest.startswith("vertex") and head == "google":
        return "gcp.vertex_ai"
    host = host_in(word)
    is_word = "." not in rest and (head in _PROVIDERS or head in _MODEL_HOSTS)
    if host is not None and not is_word:
        return provider_at(host) or host
    if head in _FRAMEWORKS:
        return None
    return _PROVIDERS.get(head, head) or None


def host_in(name: str) -> str | None:
    """Return the host of what is an address, with its port; None for a name that is none.

    `name` is in lower case. A word with one dot before an API (`openai.chat`) is no address.
    """
    found = _ADDRESS.fullmatch(name)
    if found is None:
        return None
    host, port = found["host"], found["port"] or ""
    marked = bool(port) or "://" in name or host.startswith("[")
    rest = host.partition(".")[2]
    if marked or host == _LOCAL:
        return host + port
    if not rest or all(word in _APIS for word in rest.split(".")):
        return None
    return host


def provider_at(host: str) -> str | None:
    """Return the provider that answers at a host; None for an unknown one, as of a gateway."""
    name = host.partition(":")[0]
    if _BEDROCK.fullmatch(name):
        return "aws.bedrock"
    if _VERTEX.fullmatch(name):
        return "gcp.vertex_ai"
    while name:
        if name in _HOSTS:
            return _HOSTS[name]
        name = name.partition(".")[2]
    return None


def provider_of_model(model: str) -> str | None:
    """Guess the provider from a model's name; None where the name gives none."""
    word = model.strip().lower()
    for prefix, name in _MODEL_PREFIXES.items():
        if word.startswith(prefix):
            return name
    head, slash, rest = word.partition("/")
    if not slash:
        return None
    return _PROVIDERS.get(head) or (head if head in _MODEL_HOSTS else provider_of_model(rest))


def seller_of_model(model: str) -> str | None:
    """Return the provider whose price a model has wherever it is called; None where that differs.

    `model` may have a host before a slash.
    """
    name = model.strip().lower().rpartition("/")[2]
    seller = provider_of_model(name)
    return seller if seller in _SOLD_BY_NAME and not name.startswith(_OPEN_WEIGHTS) else None

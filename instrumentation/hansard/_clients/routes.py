"""Which calls of which clients are read, and who stands behind an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hansard._clients.formats import anthropic, openai_chat, openai_responses
from hansard._clients.formats.call_attributes import Route

# By the path that the client is asked for, before an address or a deployment is put before it.
ROUTES: Final[Mapping[str, Mapping[str, Route]]] = {
    "openai": {
        "/responses": openai_responses.RESPONSES,
        "/responses/compact": openai_responses.RESPONSES,
        "/responses/input_tokens": openai_responses.COUNT,
        "/chat/completions": openai_chat.CHAT,
        "/completions": openai_chat.COMPLETION,
        "/embeddings": openai_chat.EMBEDDINGS,
    },
    "anthropic": {
        "/v1/messages": anthropic.MESSAGES,
        "/v1/messages/count_tokens": anthropic.COUNT,
    },
}

# The conventions' names of the providers that speak OpenAI's API at addresses of their own.
_PROVIDERS: Final = {
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "moonshot.cn": "moonshot_ai",
    "perplexity.ai": "perplexity",
    "x.ai": "x_ai",
    "openai.azure.com": "azure.ai.openai",
    "cohere.com": "cohere",
    "generativelanguage.googleapis.com": "gcp.gemini",
}
_CLIENTS: Final = {
    "Azure": "azure.ai.openai",
    "Bedrock": "aws.bedrock",
    "Vertex": "gcp.vertex_ai",
}


def route_of(library: str, *, method: str, url: str) -> Route | None:
    """Return how a call is read; None for one that asks no model (files, lists of models)."""
    if method.lower() != "post":
        return None
    path = "/" + url.partition("?")[0].strip("/")
    return ROUTES.get(library, {}).get(path)


def provider_of(library: str, *, client: type, host: str) -> str:
    """Return `gen_ai.provider.name`: by the client's class, then by the address it speaks to."""
    names = "".join(base.__name__ for base in client.__mro__)
    for word, provider in _CLIENTS.items():
        if word in names:
            return provider
    for domain, provider in _PROVIDERS.items():
        if host == domain or host.endswith(f".{domain}"):
            return provider
    return library

"""Words that dialects spell differently: roles, providers, finish reasons (rules 0.8 and 0.9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

MESSAGE_ROLES: Mapping[str, str] = {
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "user": "user",
    "human": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "assistantmessage": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "developer": "system",
    "systemmessage": "system",
    "systemmessagechunk": "system",
    "tool-call": "assistant",  # smolagents' own words for what it sends as assistant and user
    "tool-response": "user",
    "function": "tool",
    "functionmessage": "tool",
    "toolmessage": "tool",
    "toolmessagechunk": "tool",
    "usermessage": "user",
}

_FINISH_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "end": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_length": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "model_length": "length",
    "function_call": "tool_call",
    "function_calls": "tool_call",
    "tool_call": "tool_call",
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "blocklist": "content_filter",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "image_safety": "content_filter",
    "prohibited_content": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "spii": "content_filter",
    "error": "error",
    "failed": "error",
    "malformed_function_call": "error",
    "compaction": "compaction",
}
# A Responses API status says that the response is there, not why the model stopped.
_NO_REASONS = frozenset({"", "completed", "none", "null"})

_PROVIDERS: Mapping[str, str] = {
    "amazon": "aws.bedrock",
    "amazon-bedrock": "aws.bedrock",
    "amazon_bedrock": "aws.bedrock",
    "aws": "aws.bedrock",
    "aws.bedrock": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "az.ai.inference": "azure.ai.inference",
    "azure.ai.inference": "azure.ai.inference",
    "azure_ai_inference": "azure.ai.inference",
    "az.ai.openai": "azure.ai.openai",
    "azure": "azure.ai.openai",
    "azure-openai": "azure.ai.openai",
    "azure.ai.openai": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "gcp.gemini": "gcp.gemini",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google_genai": "gcp.gemini",
    "gcp.gen_ai": "gcp.gen_ai",
    "gcp.vertex_ai": "gcp.vertex_ai",
    "google-vertex": "gcp.vertex_ai",
    "google.vertex": "gcp.vertex_ai",
    "google_vertexai": "gcp.vertex_ai",
    "vertex": "gcp.vertex_ai",
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "ibm.watsonx.ai": "ibm.watsonx.ai",
    "watsonx": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistral_ai": "mistral_ai",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "moonshot_ai": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "grok": "x_ai",
    "x_ai": "x_ai",
    "x-ai": "x_ai",
    "xai": "x_ai",
}

# Frameworks that put their own name where the provider belongs.
_FRAMEWORKS = frozenset(
    {
        "agent_framework",
        "autogen",
        "az.ai.agents",
        "azure.ai.agents",
        "azure.ai.projects",
        "crewai",
        "gateway",
        "gcp.vertex.agent",
        "haystack",
        "langchain",
        "langgraph",
        "litellm",
        "llama_index",
        "llamaindex",
        "microsoft.agent_framework",
        "openai-agents",
        "openai_agents",
        "pydantic-ai",
        "semantic_kernel",
        "spring_ai",
        "strands",
        "strands-agents",
        "unknown",
        "vercel",
    }
)

# How model names begin, longest first where one begins another.
_MODEL_PREFIXES: tuple[tuple[str, str], ...] = (
    ("amazon.", "aws.bedrock"),
    ("anthropic.", "aws.bedrock"),
    ("apac.", "aws.bedrock"),
    ("cohere.", "aws.bedrock"),
    ("eu.", "aws.bedrock"),
    ("global.", "aws.bedrock"),
    ("meta.", "aws.bedrock"),
    ("us.", "aws.bedrock"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("dall-e", "openai"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("text-embedding-0", "gcp.gemini"),
    ("text-embedding-3", "openai"),
    ("text-embedding-ada", "openai"),
    ("whisper-1", "openai"),
    ("claude", "anthropic"),
    ("gemini", "gcp.gemini"),
    ("models/gemini", "gcp.gemini"),
    ("codestral", "mistral_ai"),
    ("magistral", "mistral_ai"),
    ("ministral", "mistral_ai"),
    ("mistral-", "mistral_ai"),
    ("pixtral", "mistral_ai"),
    ("command-", "cohere"),
    ("embed-", "cohere"),
    ("rerank-", "cohere"),
    ("deepseek-", "deepseek"),
    ("grok-", "x_ai"),
    ("kimi-", "moonshot_ai"),
    ("moonshot-", "moonshot_ai"),
    ("sonar", "perplexity"),
)

# Hosts written before a slash: `openai/gpt-4o`.
_MODEL_HOSTS = frozenset({"anthropic", "cohere", "deepseek", "groq", "openai", "perplexity"})


# Hosts and the domains that hosts end in, for providers that are named by what was called.
_HOSTS: Mapping[str, str] = {
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "ai.azure.com": "azure.ai.inference",
    "aliyuncs.com": "alibaba_cloud",
    "anthropic.com": "anthropic",
    "bigmodel.cn": "zhipuai",
    "cerebras.ai": "cerebras",
    "cognitiveservices.azure.com": "azure.ai.openai",
    "cohere.ai": "cohere",
    "cohere.com": "cohere",
    "deepseek.com": "deepseek",
    "fireworks.ai": "fireworks",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "groq.com": "groq",
    "huggingface.co": "huggingface",
    "mistral.ai": "mistral_ai",
    "ml.cloud.ibm.com": "ibm.watsonx.ai",
    "moonshot.ai": "moonshot_ai",
    "moonshot.cn": "moonshot_ai",
    "nvidia.com": "nvidia",
    "openai.azure.com": "azure.ai.openai",
    "openai.com": "openai",
    "openrouter.ai": "openrouter",
    "perplexity.ai": "perplexity",
    "sambanova.ai": "sambanova",
    "together.ai": "together",
    "together.xyz": "together",
    "x.ai": "x_ai",
    "z.ai": "zai",
}
_VERTEX = re.compile(r"[a-z0-9-]+-aiplatform\.googleapis\.com", re.ASCII)  # one a region
_BEDROCK = re.compile(r"bedrock[a-z-]*\.[a-z0-9.-]*amazonaws\.com(\.cn)?", re.ASCII)
# `https://user@host:4000/v1`: the host with its port is what is of interest.
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(?P<host>\[[0-9a-f:.]+\]|[^/:@\s]+)(?P<port>:\d+)?"
    r"(?:/\S*)?",
    re.ASCII,
)
_LONGEST_NAME = 200
# What libraries write after a provider's name and a dot: the API that was called.
_APIS = frozenset(
    {
        "audio", "chat", "chat-completions", "completion", "completions", "converse", "embed",
        "embedding", "embeddings", "generative-ai", "image", "images", "invoke", "language-model",
        "messages", "moderation", "realtime", "rerank", "reranking", "response", "responses",
        "speech", "text", "text-embedding", "transcription", "video",
    }
)  # fmt: skip
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
    for prefix, name in _MODEL_PREFIXES:
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

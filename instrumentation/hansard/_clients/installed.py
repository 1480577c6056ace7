"""Which instrumentors are installed, found by their entry points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hansard._clients import instrumentors

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "opentelemetry_instrumentor"

# Makers of instrumentors, the first is taken where several are installed for one library. Those of
# OpenTelemetry's GenAI project write the current convention; OpenInference's are the most complete
# of the others; then OpenLLMetry's. All other ones come last.
_MAKERS: Final = (
    "opentelemetry-instrumentation-genai-",
    "opentelemetry-instrumentation-openai-v2",
    "openinference-instrumentation-",
)

# Libraries of models, agents and vector stores, by their instrumentors' names: what is switched on
# when none is named. A web framework's or a database's instrumentor is not ours to switch on.
_NAMES: Final = """
agno alephalpha anthropic autogen autogen_agentchat bedrock beeai chromadb claude_agent_sdk
cohere crewai dspy google_adk google_genai google_generativeai groq guardrails haystack
instructor lancedb langchain langgraph litellm llama_index llamaindex marqo mcp milvus mistralai
ollama openai openai_agents openai_v2 pinecone pipecat portkey pydantic_ai qdrant replicate
sagemaker smolagents strands together transformers vertexai voyageai watsonx weaviate writer
"""
_OF_MODELS: Final = frozenset(_NAMES.split())


@dataclass(frozen=True, slots=True)
class Found:
    """An installed instrumentor of a library."""

    library: str
    package: str
    version: str
    entry: EntryPoint

    @property
    def rank(self) -> tuple[int, str]:
        """Where it stands in the order of preference."""
        for place, maker in enumerate(_MAKERS):
            if self.package.startswith(maker):
                return place, self.package
        return len(_MAKERS), self.package


def installed() -> dict[str, list[Found]]:
    """Return the installed instrumentors of each library, the preferred one first. Loads none."""
    from importlib.metadata import entry_points  # a tenth of what importing the SDK costs

    found: dict[str, list[Found]] = {}
    for entry in entry_points(group=GROUP):
        if entry.dist is None:
            continue
        library = _normal(entry.name)
        one = Found(library, entry.dist.name, entry.dist.version, entry)
        found.setdefault(library, []).append(one)
    return {library: sorted(several, key=_rank) for library, several in sorted(found.items())}


def is_of_models(library: str) -> bool:
    """Whether a library is switched on when none is named."""
    return library in _OF_MODELS


def package_for(library: str) -> str:
    """Return the name of the package that would instrument a library."""
    working = instrumentors.package_for(library)
    return working or f"openinference-instrumentation-{library.replace('_', '-')}"


def named(library: str) -> str:
    """Return a library's name as the entry points write it."""
    return _normal(library)


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _rank(one: Found) -> tuple[int, str]:
    return one.rank

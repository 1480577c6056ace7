"""How the golden path is played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hansard_compiler.errors import ConfigError

SCRIPTED: Final = "scripted"
SCRIPTED_MODEL: Final = "scripted-1"
PROVIDERS: Final = (SCRIPTED, "openai", "anthropic", "local")
_KEYS: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """With which model, how slowly, and who decides."""

    folder: Path  # for the working copies
    provider: str = SCRIPTED  # one of PROVIDERS
    model: str = SCRIPTED_MODEL
    model_server: str | None = None  # of a local provider
    pace_s: float = 0.0
    asks: bool = False  # leave the decisions to the person who watches

    @property
    def is_scripted(self) -> bool:
        """Whether the same happens every time, so that it can be held to what it claims."""
        return self.provider == SCRIPTED


def model_of(
    provider: str, model: str | None, *, model_server: str | None, environment: Mapping[str, str]
) -> str:
    """Return the model to ask; raises ConfigError before anything began, where it cannot be."""
    if provider == SCRIPTED:
        return model or SCRIPTED_MODEL
    if model is None:
        raise ConfigError(f"--provider {provider} takes the name of a model as well: --model NAME")
    variable = _KEYS.get(provider)
    if variable is not None and not environment.get(variable):
        raise ConfigError(f"no key for {provider}: set {variable}")
    if provider == "local" and model_server is None:
        raise ConfigError("--provider local takes --model-server ADDRESS, an OpenAI-compatible one")
    return model

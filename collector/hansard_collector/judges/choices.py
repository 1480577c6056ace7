"""Which classifier, embedder and extractor are used: choices as settings name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

from hansard_compiler.classifier import Task
from hansard_compiler.errors import ConfigError

Kind = Literal["offline", "off", "wordllama", "model"]
TASKS: Final[Sequence[Task]] = get_args(Task)
# By the names of their adapters (docs/providers.md); those that need another address have it from
# the setting `model_server`.
PROVIDERS: Final = ("openai", "anthropic", "openai_compatible", "scripted")
WORDLLAMA: Final = "wordllama"
_MODELS: Final = "PROVIDER:MODEL with one of " + ", ".join(PROVIDERS)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the ways to judge."""

    kind: Kind = "offline"
    provider: str = ""  # of kind model: one of PROVIDERS
    model: str = ""

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}" if self.kind == "model" else self.kind


OFFLINE: Final = Choice()


@dataclass(frozen=True, slots=True)
class ClassifierChoice:
    """A classifier for every task, or for one."""

    choice: Choice
    task: Task | None = None  # None: every task that has none of its own

    def __str__(self) -> str:
        return str(self.choice) if self.task is None else f"{self.task}={self.choice}"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """What judges are made of."""

    classifier: Sequence[ClassifierChoice] = ()  # none: offline
    embedder: Choice = OFFLINE
    extractor: Choice = OFFLINE
    model_server: str | None = None  # the address of openai_compatible
    script: Path | None = None  # of the scripted model
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # has the keys

    def choice_for(self, task: Task) -> Choice:
        """Return what classifies for a task: its own choice, else the common one, else offline."""
        own = [one.choice for one in self.classifier if one.task == task]
        common = [one.choice for one in self.classifier if one.task is None]
        return [*common, *own][-1] if own or common else OFFLINE


def parse_choice(text: str) -> Choice:
    """Read `offline`, `off` or `provider:model`. Raises ValueError with what was expected."""
    if text in ("offline", "off"):
        return Choice("off" if text == "off" else "offline")
    provider, colon, model = text.partition(":")
    if not colon or provider not in PROVIDERS or not model or not model.isprintable():
        raise ValueError(f"offline, off, or {_MODELS}")
    return Choice("model", provider, model)


def parse_embedder(text: str) -> Choice:
    """Read what `parse_choice` reads, or `wordllama`. Raises ValueError."""
    if text == WORDLLAMA:
        return Choice("wordllama")
    try:
        found = parse_choice(text)
    except ValueError:
        raise ValueError(f"offline, {WORDLLAMA}, off, or {_MODELS}") from None
    if found.provider == "anthropic":
        raise ValueError("another provider: anthropic has no embeddings")
    return found


def parse_classifier(text: str) -> ClassifierChoice:
    """Read a choice, alone or behind `task=`. Raises ValueError."""
    task, equals, choice = text.partition("=")
    if not equals:
        return ClassifierChoice(parse_choice(text))
    for known in TASKS:
        if task == known:
            return ClassifierChoice(parse_choice(choice), known)
    raise ValueError(f"one of {', '.join(TASKS)} before the =")


def check_once(choices: Sequence[ClassifierChoice]) -> None:
    """Refuse two choices for one task. Raises ConfigError."""
    tasks = [one.task for one in choices]
    twice = next((task for task in tasks if tasks.count(task) > 1), ...)
    if twice is not ...:
        named = "every task" if twice is None else f"the task {twice!r}"
        raise ConfigError(f"`classifier` names two classifiers for {named}; expected one")

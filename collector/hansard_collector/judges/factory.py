"""Judges made of settings: each is there, or a sentence has the reason."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from hansard_collector.interests.phrases import PhraseExtractor
from hansard_collector.interests.topics import Extractor
from hansard_collector.judges.calls import CallCounter, ModelCaller
from hansard_collector.judges.choices import TASKS, Choice, JudgeSettings, check_once
from hansard_collector.judges.embedders import HashedPieces, WordVectors
from hansard_collector.judges.errors import JudgeMissing
from hansard_collector.judges.judges import Judges
from hansard_collector.judges.models import ModelClassifier, ModelEmbedder, ModelExtractor
from hansard_collector.judges.offline import OfflineClassifier
from hansard_compiler.classifier import Classifier, Task
from hansard_compiler.errors import ConfigError
from hansard_compiler.relevance import Embedder

if TYPE_CHECKING:
    from hansard_compiler.providers.adapter import Adapter
    from hansard_compiler.providers.base import Wire
    from hansard_compiler.providers.transport.vendor_sdk import Connection

_TIMEOUT_S: Final = 60.0
_MAX_RETRIES: Final = 1  # of a call: the next cycle retries
_EXTRA: Final = ("numpy", "safetensors", "tokenizers", "wordllama")
_KEYS: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def judges_from(settings: JudgeSettings) -> Judges:
    """Return the judges that settings name. Raises ConfigError for two of one task.

    One that cannot be (no package, no key, no address) is None, and `missing` has the reason;
    nothing is sent and nothing is loaded here.
    """
    return _Making(settings).judges()


class _Making:
    """Makes judges; what lacks something leaves its reason."""

    def __init__(self, settings: JudgeSettings) -> None:
        check_once(settings.classifier)
        self._settings = settings
        self._counter = CallCounter()
        self._missing: dict[str, str] = {}
        self._callers: dict[Choice, ModelCaller] = {}

    def judges(self) -> Judges:
        by_task = {task: self._classifier(task) for task in TASKS}
        embedder, extractor = self._embedder(), self._extractor()
        return Judges(
            embedder=embedder,
            extractor=extractor,
            tasks=by_task,
            missing=self._missing,
            counter=self._counter,
        )

    def _classifier(self, task: Task) -> Classifier | None:
        choice = self._settings.choice_for(task)
        if choice.kind == "offline":
            return OfflineClassifier()
        try:
            return ModelClassifier(self._caller(choice, f"the classifier for {task}"))
        except JudgeMissing as reason:
            self._missing[task] = str(reason)
            return None

    def _extractor(self) -> Extractor | None:
        choice = self._settings.extractor
        if choice.kind == "offline":
            return PhraseExtractor()
        try:
            return ModelExtractor(self._caller(choice, "the extractor of topics"))
        except JudgeMissing as reason:
            self._missing["extractor"] = str(reason)
            return None

    def _embedder(self) -> Embedder | None:
        choice = self._settings.embedder
        try:
            if choice.kind == "offline":
                return HashedPieces()
            if choice.kind == "wordllama":
                return self._word_vectors()
            wire = self._wire(choice, "the embedder")
            return ModelEmbedder(wire, choice.provider, choice.model, self._counter)
        except JudgeMissing as reason:
            self._missing["embedder"] = str(reason)
            return None

    def _word_vectors(self) -> WordVectors:
        lacking = [name for name in _EXTRA if find_spec(name) is None]
        if lacking:
            raise JudgeMissing(
                f"the embedder 'wordllama' needs the extra 'embeddings' ({lacking[0]} is missing): "
                "pip install 'hansard[embeddings]'"
            )
        return WordVectors()

    # ---- models

    def _caller(self, choice: Choice, what: str) -> ModelCaller:
        """Return the caller of a model: one for all that use the same. Raises JudgeMissing."""
        if choice not in self._callers:
            adapter = self._adapter(choice, what)
            self._callers[choice] = ModelCaller(adapter, choice.model, self._counter)
        return self._callers[choice]

    def _adapter(self, choice: Choice, what: str) -> Adapter:
        from hansard_compiler.providers.registry import AdapterSettings, adapter_for
        from hansard_compiler.providers.scripted import read_script

        connection = self._connection(choice, what)
        script = None
        if choice.provider == "scripted":
            assert self._settings.script is not None
            try:
                script = read_script(self._settings.script.read_bytes())
            except OSError as error:
                problem = f"cannot read {str(self._settings.script)!r}: {error.strerror}"
                raise ConfigError(problem) from None
        settings = AdapterSettings(connection=connection, preflight="off", script=script)
        return adapter_for(choice.provider, settings)

    def _wire(self, choice: Choice, what: str) -> Wire:
        from hansard_compiler.providers.transport.vendor_sdk import openai_wire

        connection = self._connection(choice, what)
        if choice.provider == "scripted":
            raise JudgeMissing(f"{what} is missing: the scripted model has no embeddings")
        is_local = choice.provider == "openai_compatible"
        return openai_wire(
            connection,
            provider=choice.provider,
            needs_key=not is_local,
            environment={} if is_local else self._settings.environment,
        )

    def _connection(self, choice: Choice, what: str) -> Connection:
        """Return how a provider is reached. Raises JudgeMissing where something is lacking."""
        from hansard_compiler.providers.transport.vendor_sdk import Connection

        if choice.kind == "off":
            raise JudgeMissing(f"{what} is switched off")
        lacking = self._lacking(choice)
        if lacking:
            raise JudgeMissing(f"{what} is missing: {choice} needs {lacking}")
        key = self._settings.environment.get(_KEYS.get(choice.provider, ""))
        return Connection(
            api_key=key,
            base_url=self._address(choice),
            timeout_s=_TIMEOUT_S,
            max_retries=_MAX_RETRIES,
        )

    def _address(self, choice: Choice) -> str | None:
        if choice.provider == "openai_compatible":
            return self._settings.model_server
        return self._settings.environment.get(f"{choice.provider.upper()}_BASE_URL") or None

    def _lacking(self, choice: Choice) -> str:
        """Return what must be installed or set before a provider can be called; "" for nothing."""
        provider = choice.provider
        if provider == "scripted":
            return "" if self._settings.script else "the setting `script`"
        package = "anthropic" if provider == "anthropic" else "openai"
        if find_spec(package) is None:
            return f"pip install 'hansard[{package}]'"
        if provider == "openai_compatible":
            return "" if self._settings.model_server else "the setting `model_server`"
        return "" if self._settings.environment.get(_KEYS[provider]) else _KEYS[provider]

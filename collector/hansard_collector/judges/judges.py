"""What judges texts for the heartbeat, the scan and maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hansard_collector.judges.errors import JudgeMissing

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder
    from hansard_collector.interests.topics import Extractor
    from hansard_collector.judges.calls import CallCounter, JudgeUsage
    from hansard_compiler.classifier import Classifier, Task
    from hansard_compiler.relevance import Embedder


@dataclass(frozen=True, slots=True)
class Judges:
    """A classifier of each task, one embedder and one extractor of topics; None is a missing one.

    What needs a missing one is skipped, and says so: `for_task`, `need_embedder` and
    `need_extractor` raise JudgeMissing with the reason. `classifier` is that of tasks that are not
    in `tasks`.
    """

    classifier: Classifier | None = None
    embedder: Embedder | None = None
    extractor: Extractor | None = None
    tasks: Mapping[Task, Classifier | None] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # reasons: of a task, embedder, …
    counter: CallCounter | None = None  # of calls of models; None: none are made

    def for_task(self, task: Task) -> Classifier:
        """Return the classifier of a task. Raises JudgeMissing."""
        found = self.tasks.get(task, self.classifier)
        if found is None:
            raise JudgeMissing(self.missing.get(task, f"there is no classifier for {task}"))
        return found

    def need_embedder(self) -> Embedder:
        """Return the embedder. Raises JudgeMissing."""
        if self.embedder is None:
            raise JudgeMissing(self.missing.get("embedder", "there is no embedder"))
        return self.embedder

    def need_extractor(self) -> Extractor:
        """Return the extractor of topics. Raises JudgeMissing."""
        if self.extractor is None:
            raise JudgeMissing(self.missing.get("extractor", "there is no extractor of topics"))
        return self.extractor

    @property
    def usage(self) -> JudgeUsage:
        """What calls of models took since these judges were made."""
        from hansard_collector.judges.calls import JudgeUsage

        return JudgeUsage() if self.counter is None else self.counter.usage

    def recorded_by(self, recorder: Recorder) -> Judges:
        """Return the same judges, each call of a model recorded as a step below the current span.

        What calls no model stays as it is.
        """
        return replace(
            self,
            classifier=_recorded(self.classifier, recorder),
            embedder=_recorded(self.embedder, recorder),
            extractor=_recorded(self.extractor, recorder),
            tasks={task: _recorded(one, recorder) for task, one in self.tasks.items()},
        )

    def close(self) -> None:
        """Close connections to providers; the next call opens new ones."""
        for one in (self.classifier, self.embedder, self.extractor, *self.tasks.values()):
            close = getattr(getattr(one, "caller", one), "close", None)
            if close is not None:
                close()


def _recorded(judge: Any, recorder: Recorder) -> Any:
    bind = getattr(judge, "recorded_by", None)
    return judge if bind is None else bind(recorder)

"""Memory: facts for later prompts, each with its source and a log of who read it.

    from hansard import memory

    found = memory.candidates(project="quillbook", text="How are totals rounded?")
    compiled = run.compile_step([system, question], memory=found, model=…, …)
    memory.write("Totals are rounded once.", writer="app", type="constraint",
                 subject="rounding", project="quillbook")
    notes = memory.working()
    notes["plan"] = "read the failing test first"

Each read and each write is a step of the current run, and is recorded beside the record. Only the
writers of `Writer` may write; `docs/memory.md` says what each needs. What cannot be read or written
raises MemoryRefused or MemoryUnavailable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from hansard._gate.arguments import Json
from hansard._memory import (
    StepContext,
    invalidate_as_step,
    read_as_step,
    step_context_of,
    write_as_step,
)
from hansard._runs.run import Run
from hansard._runs.step import Step
from hansard.errors import MemoryRefused, MemoryUnavailable

__all__ = [
    "Recalled", "Remembered", "Slot", "WorkingMemory", "Writer", "candidates", "invalidate",
    "read", "working", "write",
]  # fmt: skip

Writer: TypeAlias = Literal[
    "app", "approved_tool_output", "human_approved_summary", "post_step_summarizer"
]
Slot: TypeAlias = Literal[
    "task_summary", "plan", "open_questions", "temporary_facts", "tool_outputs", "artifacts"
]
When: TypeAlias = datetime | str


@dataclass(frozen=True, slots=True)
class Remembered:
    """A version of a record; `fields` has all that the store knows of it."""

    fields: Mapping[str, Any]
    record: Mapping[str, Any]  # as a compile takes it; empty where it was not read
    outcome: str = ""  # of a write: current, repeat, superseded or review
    conflicts: Sequence[Mapping[str, Any]] = ()  # of a write: memory_id, how, is_certain

    @property
    def id(self) -> str:
        return str(self.fields["memory_id"])

    @property
    def subject(self) -> str:
        return str(self.fields["subject"])

    @property
    def content(self) -> Any:
        return self.fields["content"]

    @property
    def state(self) -> str:
        """`current`, or why it is not: superseded, review, invalidated, expired."""
        return str(self.fields["state"])

    @property
    def confidence(self) -> float:
        return float(self.fields["confidence"])


class Recalled(Sequence[Remembered]):
    """The records that a read found, with its scope; `compile_step(memory=…)` takes it as it is."""

    def __init__(self, items: Sequence[Remembered], *, scope: Mapping[str, Any]) -> None:
        self._items = list(items)
        self.scope = dict(scope)

    @property
    def records(self) -> list[Mapping[str, Any]]:
        """The records in the form that a compile takes."""
        return [one.record for one in self._items]

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Remembered: ...
    @overload
    def __getitem__(self, at: slice) -> list[Remembered]: ...
    def __getitem__(self, at: int | slice) -> Remembered | list[Remembered]:
        return self._items[at]


class ReadOptions(TypedDict, total=False):
    """The conditions of a read; a record must meet all of them. See `read`."""

    project: str | None
    user: str | None
    agent: str | None
    text: str | None
    types: Sequence[str]
    subject: str | None
    tags: Sequence[str]
    scope: Mapping[str, Any]
    min_confidence: float | None
    fresh_since: When | None
    limit: int
    scorer: str
    run: Run | str | None
    step: Step | str | None


class WriteOptions(TypedDict, total=False):
    """The fields of a record beside its content. See `write`."""

    attribute: str
    project: str | None
    user: str | None
    agent: str | None
    confidence: float | None
    fresh_as_of: When | None
    expires_at: When | None
    ttl_s: int | timedelta | None
    tags: Sequence[str]
    scope: Mapping[str, Any]
    metadata: Mapping[str, Any]
    by: str | None
    approval_id: str | None
    replaces: str | None
    source_run_id: str | None
    source_step_ids: Sequence[str]
    run: Run | str | None
    step: Step | str | None


def read(**options: Unpack[ReadOptions]) -> Recalled:
    """Return the current records: the best matches of `text` first, else the newest first.

    `project`, `user` and `agent` name the memory; give at least one. A record without a user is for
    all users, and likewise for the others. `types`, `tags`, `subject`, `min_confidence` and
    `fresh_since` narrow the read. `scorer` ranks by the
    text: `pieces`, `embeddings` (with the extra) or `bm25`.
    """
    return _read(dict(options), hidden=False)


def candidates(**options: Unpack[ReadOptions]) -> Recalled:
    """Return the same, followed by records that are not current, for a compile to leave out.

    Use it for `compile_step(memory=…)` alone: it has superseded and invalidated records, too. The
    compile has a receipt for each.
    """
    return _read(dict(options), hidden=True)


def write(
    content: Any,
    *,
    writer: Writer,
    type: str,
    subject: str,
    **options: Unpack[WriteOptions],
) -> Remembered:
    """Write durable memory and return it, with its `outcome`.

    A newer record supersedes the older one of the same namespace, type, subject and attribute. One
    that is much less trusted does not: its outcome is `review`, and a person decides. A record
    without an attribute supersedes nothing; `conflicts` lists current records that contradict it.
    """
    fields = _without_none(dict(options))
    parent = step_context_of(fields.pop("run", None), fields.pop("step", None))
    if writer == "post_step_summarizer" and not (parent.step_id or fields.get("source_step_ids")):
        # The write is a step of its own, which the store would take for the one that summarized.
        raise MemoryRefused(
            "writer_refused",
            f"the writer {writer!r} may not write this: it must name the step that summarized",
        )
    namespace = {part: fields.pop(part) for part in ("project", "user", "agent") if part in fields}
    body = {
        **fields,
        "writer": writer,
        "memory_type": type,
        "subject": subject,
        "content": content,
        "namespace": namespace,
        "tags": list(fields.get("tags", ())),
        "source_step_ids": list(fields.get("source_step_ids", ())),
    }
    if "fresh_as_of" in body:
        body["freshness_ts"] = body.pop("fresh_as_of")
    return _written(write_as_step(parent, _with_times(body)))


def invalidate(
    memory: Remembered | str,
    *,
    reason: str,
    by: str,
    run: Run | str | None = None,
    step: Step | str | None = None,
    token: str | None = None,
) -> Remembered:
    """Mark a record as invalid, with the reason: reads leave it out, and its history stays.

    A server accepts that only with the `token` of a person, as `hansard.approvals.approve` does.
    """
    memory_id = memory.id if isinstance(memory, Remembered) else memory
    body = {"memory_id": memory_id, "reason": reason, "by": by}
    return Remembered(
        invalidate_as_step(step_context_of(run, step), body, token=token)["memory"], {}
    )


def working(run: Run | str | None = None, *, chain: Step | str | None = None) -> WorkingMemory:
    """Return the working memory of a run, or of the chain of steps that begins with `chain`.

    A chain sees the run's slots where it has not written its own.
    """
    return WorkingMemory(run, chain)


class WorkingMemory:
    """Six slots of one run. The last write of a slot is current; the earlier ones are history.

    A slot holds a text, an object, or any other JSON value; that is the `value` of an object then.
    """

    def __init__(self, run: Run | str | None, chain: Step | str | None) -> None:
        self._run = run
        self._chain = chain.step_id if isinstance(chain, Step) else chain

    def set(self, slot: Slot, content: Any, *, writer: Writer = "app", **about: Any) -> Remembered:
        """Write a slot; the writer is the program unless another one is named."""
        parent = self._step_context()
        fields = _without_none({**about, "chain": self._chain})
        body = {
            **fields,
            "writer": writer,
            "memory_type": "working",
            "slot": slot,
            "content": content if isinstance(content, str | dict) else {"value": content},
        }
        return _written(write_as_step(parent, _with_times(body)))

    def get(self, slot: Slot, default: Any = None) -> Any:
        """Return a slot's content; the default if it is empty."""
        found = self._read([slot], hidden=False)
        return _plain(found[0].content) if found else default

    def all(self) -> Recalled:
        """Return every slot that is not empty, for `compile_step(memory=…)`, too."""
        return self._read([], hidden=False)

    def history(self, slot: Slot) -> list[Remembered]:
        """Return all versions of a slot, the current one first."""
        found = self._read([slot], hidden=True)
        return sorted(found, key=lambda one: int(one.fields["created_ns"]), reverse=True)

    def __getitem__(self, slot: Slot) -> Any:
        found = self._read([slot], hidden=False)
        if not found:
            raise KeyError(slot)
        return _plain(found[0].content)

    def __setitem__(self, slot: Slot, content: Any) -> None:
        self.set(slot, content)

    def __iter__(self) -> Iterator[str]:
        return iter([str(one.fields["slot"]) for one in self.all()])

    def _read(self, slots: Sequence[str], *, hidden: bool) -> Recalled:
        query = {"slots": list(slots), "chain": self._chain, "hidden": hidden}
        owner = self._step_context().run_id
        return _recalled(
            read_as_step(step_context_of(None, None), _without_none({**query, "of_run": owner}))
        )

    def _step_context(self) -> StepContext:
        parent = step_context_of(self._run, None)
        if parent.run_id is None:
            raise MemoryUnavailable("working memory belongs to a run, and none is open here")
        return parent


def _read(options: Json, *, hidden: bool) -> Recalled:
    fields = _without_none(options)
    parent = step_context_of(fields.pop("run", None), fields.pop("step", None))
    namespace = {part: fields.pop(part) for part in ("project", "user", "agent") if part in fields}
    query = {**fields, "namespace": namespace, "hidden": hidden}
    if "types" in query:
        query["memory_types"] = list(query.pop("types"))
    if "tags" in query:
        query["tags"] = list(query["tags"])
    return _recalled(read_as_step(parent, _with_times(query)))


def _recalled(body: Json) -> Recalled:
    pairs = zip(body["items"], body["memory_records"], strict=True)
    return Recalled([Remembered(fields, record) for fields, record in pairs], scope=body["scope"])


def _written(body: Json) -> Remembered:
    return Remembered(body["memory"], {}, body["outcome"], body.get("conflicts", ()))


def _plain(content: Any) -> Any:
    is_value = isinstance(content, dict) and set(content) == {"value"}
    return content["value"] if is_value else content


def _without_none(fields: Mapping[str, Any]) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def _with_times(fields: Json) -> Json:
    """Return the same with times as ISO texts and durations as whole seconds."""
    return {key: _sent(value) for key, value in fields.items()}


def _sent(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return int(value.total_seconds()) if isinstance(value, timedelta) else value

"""Memory: what an agent is to know beyond one prompt, with its source, and who read it.

    from hansard import memory

    found = memory.candidates(project="quillbook", text="How are totals rounded?")
    compiled = run.compile_step([system, question], memory=found, model=…, …)
    memory.write("Totals are rounded once.", writer="app", type="constraint",
                 subject="rounding", project="quillbook")
    notes = memory.working()
    notes["plan"] = "read the failing test first"

Each read and each write is a step of the current run, and is recorded beside the record. Only named
writers write; `docs/memory.md` tells what each needs. These are functions of the program and not
only watched: what cannot be read or written raises MemoryRefused or MemoryUnavailable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from hansard._gate.arguments import Json
from hansard._memory.steps import Place, place_of, tell_end, tell_read, tell_write
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
    """A version of a record; `told` has everything that is known of it."""

    told: Mapping[str, Any]
    record: Mapping[str, Any]  # as a compile takes it; empty where it was not read
    outcome: str = ""  # of a write: current, repeat, superseded or review
    conflicts: Sequence[Mapping[str, Any]] = ()  # of a write: memory_id, how, is_certain

    @property
    def id(self) -> str:
        return str(self.told["memory_id"])

    @property
    def subject(self) -> str:
        return str(self.told["subject"])

    @property
    def content(self) -> Any:
        return self.told["content"]

    @property
    def state(self) -> str:
        """`current`, or why it does not stand: superseded, review, invalidated, expired."""
        return str(self.told["state"])

    @property
    def confidence(self) -> float:
        return float(self.told["confidence"])


class Recalled(Sequence[Remembered]):
    """What a read found; given to `compile_step(memory=…)` as it is, with its scope."""

    def __init__(self, items: Sequence[Remembered], *, scope: Mapping[str, Any]) -> None:
        self._items = list(items)
        self.scope = dict(scope)

    @property
    def records(self) -> list[Mapping[str, Any]]:
        """The records as a compile takes them."""
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
    """What to read; all of it must be met. See `read`."""

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
    """What is told of a record beside its content. See `write`."""

    attribute: str
    project: str | None
    user: str | None
    agent: str | None
    confidence: float | None
    fresh_as_of: When | None
    expires_at: When | None
    ttl_s: int | None
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
    """Return what stands, the best answers to `text` first, else the last written.

    `project`, `user` and `agent` say whose memory: one of them at least. Records that name none of
    a sort are for all. `types`, `tags`, `subject`, `min_confidence` and `fresh_since` narrow it.
    `scorer` is what rates by the text: `pieces`, `embeddings` (with the extra) or `bm25`.
    """
    return _read(dict(options), hidden=False)


def candidates(**options: Unpack[ReadOptions]) -> Recalled:
    """Return the same, and after it what does not stand, for a compile to leave out with a receipt.

    Not for anything but `compile_step(memory=…)`: superseded and invalidated records are among it.
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
    that is much less trusted does not: its outcome is `review`, and a person decides. One without
    an attribute supersedes nothing; `conflicts` has what stands beside it and contradicts it.
    """
    told = _without_none(dict(options))
    place = place_of(told.pop("run", None), told.pop("step", None))
    if writer == "post_step_summarizer" and not (place.step_id or told.get("source_step_ids")):
        # The write is a step of its own, which the store would take for the one that summarized.
        raise MemoryRefused(
            "writer_refused",
            f"the writer {writer!r} may not write this: it must name the step that summarized",
        )
    namespace = {part: told.pop(part) for part in ("project", "user", "agent") if part in told}
    body = {
        **told,
        "writer": writer,
        "memory_type": type,
        "subject": subject,
        "content": content,
        "namespace": namespace,
        "tags": list(told.get("tags", ())),
        "source_step_ids": list(told.get("source_step_ids", ())),
    }
    if "fresh_as_of" in body:
        body["freshness_ts"] = body.pop("fresh_as_of")
    return _written(tell_write(place, _with_times(body)))


def invalidate(
    memory: Remembered | str,
    *,
    reason: str,
    by: str,
    run: Run | str | None = None,
    step: Step | str | None = None,
    token: str | None = None,
) -> Remembered:
    """Say that a record does not hold, and why: it is read no more, and stays with its history.

    A server takes that with the `token` of a person alone, as `hansard.approvals.approve` does.
    """
    memory_id = memory.id if isinstance(memory, Remembered) else memory
    body = {"memory_id": memory_id, "reason": reason, "by": by}
    return Remembered(tell_end(place_of(run, step), body, token=token)["memory"], {})


def working(run: Run | str | None = None, *, chain: Step | str | None = None) -> WorkingMemory:
    """Return the working memory of a run, or of the chain of steps that begins with `chain`.

    A chain sees the run's slots where it has not written its own.
    """
    return WorkingMemory(run, chain)


class WorkingMemory:
    """Six slots of one run. The last write of a slot is current; the ones before are history.

    A slot holds a text, an object, or anything else that JSON has: kept as the object's `value`.
    """

    def __init__(self, run: Run | str | None, chain: Step | str | None) -> None:
        self._run = run
        self._chain = chain.step_id if isinstance(chain, Step) else chain

    def set(self, slot: Slot, content: Any, *, writer: Writer = "app", **about: Any) -> Remembered:
        """Write a slot: the program itself does, unless another writer is named."""
        place = self._place()
        told = _without_none({**about, "chain": self._chain})
        body = {**told, "writer": writer, "memory_type": "working", "slot": slot}
        return _written(tell_write(place, _with_times({**body, "content": _object(content)})))

    def get(self, slot: Slot, default: Any = None) -> Any:
        """Return a slot's content; the default where nothing stands there."""
        found = self._read([slot], hidden=False)
        return _plain(found[0].content) if found else default

    def all(self) -> Recalled:
        """Return every slot that holds something, for `compile_step(memory=…)` too."""
        return self._read([], hidden=False)

    def history(self, slot: Slot) -> list[Remembered]:
        """Return what a slot held, the current one first."""
        found = self._read([slot], hidden=True)
        return sorted(found, key=lambda one: int(one.told["created_ns"]), reverse=True)

    def __getitem__(self, slot: Slot) -> Any:
        found = self._read([slot], hidden=False)
        if not found:
            raise KeyError(slot)
        return _plain(found[0].content)

    def __setitem__(self, slot: Slot, content: Any) -> None:
        self.set(slot, content)

    def __iter__(self) -> Iterator[str]:
        return iter([str(one.told["slot"]) for one in self.all()])

    def _read(self, slots: Sequence[str], *, hidden: bool) -> Recalled:
        asked = {"slots": list(slots), "chain": self._chain, "hidden": hidden}
        whose = self._place().run_id
        return _recalled(tell_read(place_of(None, None), _without_none({**asked, "of_run": whose})))

    def _place(self) -> Place:
        place = place_of(self._run, None)
        if place.run_id is None:
            raise MemoryUnavailable("working memory belongs to a run, and none is open here")
        return place


def _read(options: Json, *, hidden: bool) -> Recalled:
    told = _without_none(options)
    place = place_of(told.pop("run", None), told.pop("step", None))
    namespace = {part: told.pop(part) for part in ("project", "user", "agent") if part in told}
    asked = {**told, "namespace": namespace, "hidden": hidden}
    if "types" in asked:
        asked["memory_types"] = list(asked.pop("types"))
    if "tags" in asked:
        asked["tags"] = list(asked["tags"])
    return _recalled(tell_read(place, _with_times(asked)))


def _recalled(answer: Json) -> Recalled:
    pairs = zip(answer["items"], answer["memory_records"], strict=True)
    return Recalled([Remembered(told, record) for told, record in pairs], scope=answer["scope"])


def _written(answer: Json) -> Remembered:
    return Remembered(answer["memory"], {}, answer["outcome"], answer.get("conflicts", ()))


def _object(content: Any) -> Any:
    """Return content as a record holds it: a text or an object; a list, say, is its value."""
    return content if isinstance(content, str | dict) else {"value": content}


def _plain(content: Any) -> Any:
    is_value = isinstance(content, dict) and set(content) == {"value"}
    return content["value"] if is_value else content


def _without_none(told: Mapping[str, Any]) -> Json:
    return {key: value for key, value in told.items() if value is not None}


def _with_times(told: Json) -> Json:
    """Return the same with times as texts, which is how they travel."""
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in told.items()
    }

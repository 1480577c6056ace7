"""Annotations, written and withdrawn by authorized callers: the only public way in.

Every write is one transaction on the caller's thread and survives a power cut. What is written
goes through the redactor first, as everything does that this store keeps.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.errors import NotFoundError
from hansard_compiler.models.annotations import Annotate, Withdraw
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.annotations import rows
from hansard_store.annotations.errors import (
    AnnotationNotCurrent,
    InvalidAnnotation,
    SecretInName,
    TextNotRetained,
    TooMany,
)
from hansard_store.annotations.queries import get_annotation
from hansard_store.annotations.rows import Annotation, AnnotationRow, Origin
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.ids import new_id
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import is_own_name

MOST_OF_TARGET: Final = 500  # that stand on one run or step


class AnnotationService:
    """The annotations of one store. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "api",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._retention = Retention.of(folder, mode)
        self._origin: Origin = origin
        self._clock = clock
        self._connections = OwnConnections(folder)

    def through(self, origin: Origin) -> AnnotationService:
        """Return the same service for another origin."""
        other = copy(self)
        other._origin = origin
        return other

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def write(self, request: Annotate, *, by: str = "") -> Annotation:
        """Write an annotation; `by` is who does where the request does not say.

        A newer score of one name by one author replaces the older; what stands already word for
        word is not written again. Raises AnnotationRefused, NotFoundError, StoreBusyError.
        """
        now_ns = self._clock()
        _refuse_own_name(request.by or by)
        row = self._row(request, by=request.by or by, now_ns=now_ns)
        with self._writing(row) as (connection, row):
            same = None if row.kind == "note" else rows.find_same(connection, row)
            if same is not None and same.row.says == row.says:
                return same
            if same is not None:
                rows.end(connection, same.id, "replaced", by=row.author, reason=None, now_ns=now_ns)
                rows.prune(connection, row.target, "replaced")
            elif rows.count_standing(connection, row.target) >= MOST_OF_TARGET:
                raise TooMany(most=MOST_OF_TARGET)
            rows.add(connection, row)
            rows.tell_lists(connection, row.trace_id)
            assert row.annotation_id is not None
            return get_annotation(connection, row.annotation_id.hex())

    def withdraw(self, annotation_id: str, request: Withdraw, *, by: str = "") -> Annotation:
        """Take an annotation back: it stays, with who did it, when and why.

        Raises NotFoundError; AnnotationNotCurrent where somebody was first.
        """
        now_ns = self._clock()
        reason, _ = self._text(request.reason)
        _refuse_own_name(request.by or by)
        author = self._retention.clean_text(request.by or by)
        with self._connections.writing() as connection:
            found = get_annotation(connection, annotation_id)
            if found.state != "current":
                raise AnnotationNotCurrent(found.annotation_id or "", state=found.state)
            rows.end(connection, found.id, "withdrawn", by=author, reason=reason, now_ns=now_ns)
            rows.prune(connection, found.row.target, "withdrawn")
            rows.tell_lists(connection, found.row.trace_id)
            return get_annotation(connection, annotation_id)

    def restore(self, record: Mapping[str, Any]) -> bool:
        """Write one that another store exported, ended or not; False where it is known.

        Raises InvalidAnnotation for what is none, NotFoundError where its run or step is not here.
        """
        request, whole = _exported(record)
        whole["ended_by"] = whole["ended_by"] and self._retention.clean_text(whole["ended_by"])
        whole["ended_reason"], _ = self._text(whole["ended_reason"])
        row = self._row(request, by=request.by or "", now_ns=whole["created_ns"])._replace(**whole)
        with self._writing(row) as (connection, row):
            if not rows.restore(connection, row):
                return False
            if row.ended is not None:
                rows.prune(connection, row.target, row.ended)
            rows.tell_lists(connection, row.trace_id)
            return True

    def write_json(self, fields: Json, *, by: str = "") -> Annotation:
        """Write what a form or a program tells.

        Raises InvalidAnnotation for fields that do not fit.
        """
        return self.write(_parsed(Annotate, {"by": by or None, **fields}))

    def withdraw_json(self, annotation_id: str, fields: Json) -> Annotation:
        """Take back as a form or a program tells; raises as `withdraw`, and InvalidAnnotation."""
        return self.withdraw(annotation_id, _parsed(Withdraw, fields))

    # ---- inside

    @contextmanager
    def _writing(self, row: AnnotationRow) -> Iterator[tuple[apsw.Connection, AnnotationRow]]:
        """Begin a transaction, with the row put on what it names; raises NotFoundError."""
        with self._connections.writing() as connection:
            target = rows.find_target(connection, row.target)
            if target is None:
                what, name = "run", row.trace_id.hex()
                if row.span_id:
                    what, name = "step", f"{name}-{row.span_id.hex()}"
                raise NotFoundError(what, name)
            yield connection, row._replace(side=target.side)

    def _row(self, request: Annotate, *, by: str, now_ns: int) -> AnnotationRow:
        """Return what may be stored of a request."""
        run = request.run
        digits, _, side = (request.step_id or "")[33:].partition(".")
        text, found = self._text(request.text or request.explanation)
        expected, more = self._text(request.expected)
        label = request.score.label if request.score else None
        return AnnotationRow(
            annotation_id=new_id(),
            span=None,
            trace_id=bytes.fromhex(run),
            span_id=bytes.fromhex(digits),
            side=int(bool(side)),
            kind=request.kind,
            name=self._named(request.kind, request.name or request.tag or ""),
            value=request.score.value if request.score else None,
            label=None if label is None else self._named("label", label),
            text=text,
            expected=expected,
            source=request.source,
            author=self._retention.clean_text(by),
            origin=self._origin,
            created_ns=now_ns,
            removed=tuple(dict.fromkeys((*found, *more))),
        )

    def _text(self, text: str | None) -> tuple[str | None, tuple[str, ...]]:
        """Return a text without its secrets, and what they were; refused where none is stored."""
        if text is None:
            return None, ()
        if self._retention.is_metadata_only:
            raise TextNotRetained
        if self._retention.is_full:
            return text, ()
        redacted = self._retention.redactor.redact_text(text)
        return redacted.text, tuple(f"{one.rule}:{one.fingerprint}" for one in redacted.findings)

    def _named(self, field: str, name: str) -> str:
        """Return what lists are narrowed by; a marker in it could not be found again."""
        if not self._retention.is_full:
            found = self._retention.redactor.redact_text(name).findings
            if found:
                raise SecretInName(field, found[0].rule)
        return name


_ASKED: Final = ("run_id", "step_id", "kind", "text", "explanation", "expected", "score")
_ENDED: Final = ("replaced", "withdrawn")
_LAST_NS: Final = (1 << 63) - 1
# As `_text` writes them. Anything else would be stored as it is, whatever it holds.
_REMOVED: Final = re.compile(r"[a-z0-9_.-]{1,64}:[0-9a-f]{12}")


def _exported(record: Mapping[str, Any]) -> tuple[Annotate, dict[str, Any]]:
    """Return what an exported annotation says, and what a new one would not say of itself."""
    fields = {name: record[name] for name in _ASKED if record.get(name) is not None}
    if fields.get("step_id"):
        fields.pop("run_id", None)
    fields["tag" if record.get("kind") == "tag" else "name"] = record.get("name")
    fields |= {"source": record.get("source") or "human", "by": record.get("author") or None}
    ended = record.get("ended") or {}
    try:
        whole: dict[str, Any] = {
            "annotation_id": bytes.fromhex(record["annotation_id"]),
            "created_ns": _time(record["created_ns"]),
            "ended_ns": _time(ended["ns"]) if ended else None,
            "ended": record["state"] if ended else None,
            "ended_by": _words(ended.get("by"))[:256] if ended else None,
            "ended_reason": _words(ended.get("reason"))[:2_000] or None if ended else None,
            "removed": tuple(filter(_REMOVED.fullmatch, map(_words, record.get("removed") or ()))),
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidAnnotation([("annotation", "an id, a time or an end is missing")]) from None
    if len(whole["annotation_id"]) != 16 or whole["ended"] not in (None, *_ENDED):
        raise InvalidAnnotation([("annotation", "its id or its state is none")])
    return _parsed(Annotate, {name: one for name, one in fields.items() if one is not None}), whole


def _time(value: object) -> int:
    """Return nanoseconds; raises ValueError for what no database keeps."""
    time_ns = int(str(value))
    if not 0 <= time_ns <= _LAST_NS:
        raise ValueError(value)
    return time_ns


def _words(value: object) -> str:
    """Return a text that can be stored, whatever a file says."""
    return ("" if value is None else str(value)).encode("utf-8", "replace").decode()


def _parsed(model: type[Any], fields: Json) -> Any:
    try:
        return parse(model, fields)
    except InvalidInput as error:
        raise InvalidAnnotation([(one.where, one.what) for one in error.problems]) from None


def _refuse_own_name(by: str) -> None:
    """Raise InvalidAnnotation where somebody writes in Hansard's own name."""
    if is_own_name(by):
        raise InvalidAnnotation([("by", reserved_text(by))])

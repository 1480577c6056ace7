"""The audit log as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hansard_store.approvals.json import event_json
from hansard_web.api.queries import trace_id_of
from hansard_web.audit.filters import event_filter, events_page
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages

_ABSENT: Final = dict.fromkeys(("approval", "run", "since", "until", "type", "actor"))


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    plain: dict[str, Any] = {**_ABSENT, **filters}
    with_seals = bool(plain.pop("seals", ""))
    chosen = event_filter(
        find_approval=lambda text: source.approvals.approval(text).key,
        find_run=lambda text: trace_id_of(text, source.readers.read),
        with_seals=with_seals,
        **plain,
    )
    found = all_pages(lambda cursor: events_page(source.approvals, chosen, cursor, limit=AT_ONCE))
    return map(event_json, found)


TABLE: Final = Table(
    name="events",
    columns=(
        "seq", "time", "type", "actor", "who", "is_claimed", "action", "source", "subject",
        "approval_id", "run_id", "step_id", "body", "contents", "prev_hash", "hash",
    ),
    filters=("type", "actor", "who", "action", "source", "subject", "approval", "run", "since",
             "until", "seals"),
    rows=_rows,
)  # fmt: skip

"""Columns that no check of `hansard verify` can prove, each with the reason.

Every other column of every table is compared: with its seal, with the chain of the audit log,
with a digest, or (`--deep`) with what its spans and log records give. A test alters one value
in each column of the schema, so that a new column is either compared or named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ALL: Final = "*"  # every column of the table
_NUMBER: Final = "a number of the row alone; nothing refers to it"

UNPROVABLE: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "run": {
            "change_seq": "counts changes, for readers that follow them",
            "version": "counts changes, for readers that follow them",
            "pinned": "that a person keeps the run from gc; the row changes with every span, so "
            "that it has no seal",
            "last_received_ns": "when something of the run last arrived; a rebuild cannot know it",
            "alive_until_ns": "until when the program of an open run is assumed to be alive",
        },
        "text": {
            "first_span": "the step that said it first; derived in another order, it is another",
        },
        "tool_event": {"id": _NUMBER},
        "figure": {"computed_ns": "when the row was computed; what it says is compared"},
        "figure_due": {
            ALL: "hours whose figures are to be computed again; a row too many has it done once "
            "more"
        },
        "seal_due": {
            "id": "the order of the marks of the last seconds; each mark is signed, and the next "
            "seal removes it",
        },
        "traced_turn": {
            ALL: "to which trace the log records of a turn were given: the first claim counts"
        },
        "log_record": {
            "span_id of a session's record": "on which step a record without ids was placed",
        },
        "content_use": {ALL: "a missing row is named; an added one only keeps a content from gc"},
        "content_list_use": {ALL: "a missing row is named; an added one only keeps a list from gc"},
        "setting": {ALL: "progress of Hansard's own work"},
        "claim_verdict": {
            "count": "how many cycles met the same contradiction; the verdict itself is sealed",
            "last_seen_ns": "which cycle met it last; the verdict itself is sealed",
        },
        "evaluated_run": {
            ALL: "by what a run was judged; what was found of it is sealed, and a removed row has "
            "the run judged again"
        },
        "memory_pair": {
            ALL: "what a classifier said, so that it is not asked again; the links and tasks that "
            "follow are sealed"
        },
        "memory_compared": {ALL: "how far maintenance of memory is"},
        "memory_embedding": {
            ALL: "made by an embedder, which no check runs again; links that follow are sealed"
        },
        "process_keepalive": {ALL: "until when a process is assumed to be alive"},
    }
)

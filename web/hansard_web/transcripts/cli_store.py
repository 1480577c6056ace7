"""Transcripts of a store, as commands open them: no server is needed, and none is disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from hansard_compiler.errors import ConfigError, NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_compiler.transcripts.errors import TranscriptError
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId, parse_log_id
from hansard_store.transcripts.queries import find_transcript
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.cli.base import json_option, read_config, setting_options
from hansard_web.cli.store import find_store, open_store, reading

_Function = Callable[..., Any]


def of_log(function: _Function) -> _Function:
    """Add the argument that names a conversation or a sub-agent, and where the store is."""
    return click.argument("log")(setting_options("data")(json_option(function)))


def transcripts_of(data: str | None, retention: str | None = None) -> SqliteTranscripts:
    folder = find_store(data)
    open_store(folder).close()  # of this version, or refused
    config = read_config(data=data, retention=retention)
    mode = RetentionMode(config.retention)
    return SqliteTranscripts(folder, mode, Redactor(folder.key()), source="cli")


@contextmanager
def opened(data: str | None, log: str) -> Iterator[tuple[SqliteTranscripts, LogId]]:
    kept = transcripts_of(data)
    yield kept, find_log(kept, data, log)


def find_log(
    kept: SqliteTranscripts, data: str | None, wanted: str, *, may_make: bool = False
) -> LogId:
    """Return what somebody names: an id of either kind, or a conversation by its name."""
    if wanted.startswith((ConversationId.prefix, BranchId.prefix)):
        try:
            return parse_log_id(wanted)
        except TranscriptError:
            pass  # a conversation may be called so
    if may_make:
        return kept.ensure(wanted).id
    with reading(data) as connection:
        found = find_transcript(connection, wanted)
    if found is None:
        raise NotFoundError("transcript", wanted)
    return found.conversation.id


def line_of(log: LogId) -> ConversationId:
    if isinstance(log, BranchId):
        raise ConfigError(f"{log} is a sub-agent; name its conversation")
    return log

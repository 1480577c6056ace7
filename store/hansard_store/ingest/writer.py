"""The ingest connection with its caches: one writer a process, owned by the pipeline thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from hansard_compiler.redaction.redactor import Redactor
from hansard_store.calls import cross_trace_duplicates
from hansard_store.calls.usage_rollup import follow_roots
from hansard_store.content.large_values import ContentWriter
from hansard_store.content.payloads import folder_of
from hansard_store.content.texts import TextWriter
from hansard_store.database.compression import pack
from hansard_store.database.disk import need_room_for_ingest
from hansard_store.database.transactions import begin_after_others, rolled_back_on_error
from hansard_store.error_groups.steps import ErrorStepWriter
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.liveness import Keepalive, add_keepalive
from hansard_store.ingest.logs import LogWriter
from hansard_store.ingest.otlp_records import LargeValue
from hansard_store.ingest.redactions import RedactionWriter
from hansard_store.ingest.spans import SpanWriter
from hansard_store.ingest.stored_spans import SpanRecordWriter
from hansard_store.ledger import LedgerBatch
from hansard_store.runs.projection import RunWriter
from hansard_store.search.indexes import IndexWriter

_EPOCH = "SELECT value FROM setting WHERE name = 'epoch'"
_KNOWN_ENVELOPES = 10_000
_REPEATED_CHARS = 4_096


def _redacting(redactor: Redactor) -> Callable[[str], str]:
    """Return what redacts texts of senders; the same few short ones come with every request."""

    def redact(text: str) -> str:
        return redactor.redact_text(text).text

    again = lru_cache(maxsize=1024)(redact)
    return lambda text: again(text) if len(text) <= _REPEATED_CHARS else redact(text)


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """What can be written inside one transaction."""

    spans: SpanWriter
    logs: LogWriter
    runs: RunWriter
    ledger: LedgerBatch
    redactions: RedactionWriter
    expect: Callable[[Sequence[LargeValue], Sequence[SpanProjection]], None]  # see _expect
    write_held: Callable[[], None]  # before records or contents of this transaction are read
    keepalives: list[Keepalive] = field(default_factory=list)


class IngestWriter:
    """Owns the ingest connection and what is known of ids; used by one thread."""

    def __init__(self, connection: apsw.Connection, *, derived_version: int) -> None:
        self.connection = connection
        self._folder = folder_of(connection)
        self._key = self._folder.key()
        redactor = Redactor(self._key)
        self._redacted = _redacting(redactor)
        self._derived_version = derived_version
        self._contents = ContentWriter(connection)
        self._index = IndexWriter(connection)
        self._texts = TextWriter(connection, self._contents, self._index)
        self._records = SpanRecordWriter(connection)
        self._envelopes: dict[bytes, int] = {}
        self._epoch = int(connection.execute(_EPOCH).get)

    @contextmanager
    def batch(self, *, now_ns: int | None) -> Iterator[WriteBatch]:
        """Run a block in one transaction; all of it is stored, or nothing and no id is kept.

        `now_ns` None: nothing came in, so what is written is no news of its runs.
        Raises StoreBusyError when the store cannot be written now.
        """
        with self.rows(now_ns=now_ns) as batch:
            yield batch
        self.commit()

    @contextmanager
    def rows(self, *, now_ns: int | None) -> Iterator[WriteBatch]:
        """Run a block in a transaction that `commit` is to end; else like `batch`."""
        if now_ns is not None:
            need_room_for_ingest(self._folder)
        begin_after_others(self.connection)
        with self._undone_on_error():
            self._check_epoch()
            self._contents.begin()
            self._texts.begin()
            runs = RunWriter(self.connection, now_ns=now_ns)
            errors = ErrorStepWriter(self.connection, self._key)
            spans = SpanWriter(
                self.connection,
                runs=runs,
                contents=self._contents,
                records=self._records,
                texts=self._texts,
                index=self._index,
                derived_version=self._derived_version,
                write_held=self._write_held,
                errors=errors,
            )
            logs = LogWriter(self.connection, runs=runs, contents=self._contents)
            ledger = LedgerBatch(self._redacted)
            redactions = RedactionWriter(self.connection)
            batch = WriteBatch(
                spans, logs, runs, ledger, redactions, self._expect, self._write_held
            )
            yield batch
            cross_trace_duplicates.settle(self.connection, runs)
            follow_roots(self.connection, runs.changed())
            runs.flush()
            if now_ns is not None:
                errors.reopen_groups(now_ns=now_ns)
                for keepalive in batch.keepalives:
                    add_keepalive(self.connection, keepalive, now_ns=now_ns)
                ledger.flush(self.connection, now_ns=now_ns)

    def commit(self) -> None:
        """Write what waits, index it and commit: a few long statements that hold no Python lock.

        May run in another thread while nobody else uses the writer. Raises what `batch` raises;
        then nothing is stored.
        """
        with self._undone_on_error():
            self._records.write_held()
            self._contents.flush()
            self._texts.flush()
            self._index.flush()
            self.connection.execute("COMMIT")

    def _expect(self, large: Sequence[LargeValue], made: Sequence[SpanProjection]) -> None:
        """Look up at once what spans that are about to be added may share with stored ones."""
        texts = self._texts.expect(made)
        self._contents.expect([one.cut for one in large if one.cut is not None], texts)

    def _write_held(self) -> None:
        self._records.write_held()
        self._contents.write_held()
        self._texts.write_held()

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        with rolled_back_on_error(self.connection), ExitStack() as undo:
            undo.callback(self._forget)
            yield
            undo.pop_all()

    def resource(self, envelope: ResourceSpans, service_name: str | None) -> int:
        """Return the id of a resource; the envelope holds only resource and schema_url."""
        return self._envelope("resource", envelope, ("service_name",), (service_name,))

    def scope(self, envelope: ScopeSpans) -> int:
        """Return the id of a scope; the envelope holds only scope and schema_url."""
        scope = envelope.scope
        return self._envelope("scope", envelope, ("name", "version"), (scope.name, scope.version))

    def _envelope(
        self,
        table: str,
        envelope: ResourceSpans | ScopeSpans,
        columns: Sequence[str],
        values: Sequence[str | None],
    ) -> int:
        record = envelope.SerializeToString()
        digest = hashlib.sha256(table.encode() + record).digest()
        known = self._envelopes.get(digest)
        if known is None:
            execute = self.connection.execute
            known = execute(f"SELECT id FROM {table} WHERE digest = ?", (digest,)).get
            if known is None:
                names, places = ", ".join(("digest", *columns, "record")), ", ?" * len(columns)
                add = f"INSERT INTO {table} ({names}) VALUES (?{places}, ?) RETURNING id"
                known = execute(add, (digest, *values, pack(record))).get
            if len(self._envelopes) >= _KNOWN_ENVELOPES:
                self._envelopes.clear()
            self._envelopes[digest] = known
        return int(known)

    def _check_epoch(self) -> None:
        epoch = int(self.connection.execute(_EPOCH).get)
        if epoch != self._epoch:
            # gc removed rows: what this process knows of ids may be of rows that are gone.
            self._forget()
            self._epoch = epoch

    def _forget(self) -> None:
        self._records.forget()
        self._contents.forget()
        self._texts.forget()
        self._index.forget()
        self._envelopes.clear()

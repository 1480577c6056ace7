"""Results of evaluations that arrive as log records: scores of a span that stays as it is.

Deriving a span again takes some forty statements; of many results, as a cycle of the heartbeat has
them, that is most of the work. Nothing but the scores of a span changes where its dialect reads the
same with its log records as without them, and only that is written then.
"""

from __future__ import annotations

from typing import Final

import apsw

from hansard_collector.derivation.rederivation import MOST_LOGS, Envelopes, StoredSpan, stored_span
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.pipeline.preparation import PreparedLog, annotations_with_results
from hansard_store.ingest.stored_spans import list_span_rows
from hansard_store.ingest.writer import Batch

RESULT: Final = "gen_ai.evaluation.result"


def is_result_alone(item: PreparedLog) -> bool:
    """Say whether a log record is a result, and of no session and no prompt."""
    name = item.fields["event_name"]
    return name == RESULT and item.event is None and item.prompt is None


class Scorer:
    """Adds scores within one transaction; what spans share is read once."""

    def __init__(self, connection: apsw.Connection, messages: MessageCache) -> None:
        self._envelopes = Envelopes(connection)
        self._messages = messages

    def score(
        self, connection: apsw.Connection, batch: Batch, trace_id: bytes, span_id: bytes
    ) -> bool:
        """Add the scores of a stored span; False where it has to be derived again.

        True where no such span is stored: its logs are read when it comes.
        """
        rows = list_span_rows(connection, trace_id, span_id)
        return all(self._add(batch, stored_span(connection, row, self._envelopes)) for row in rows)

    def _add(self, batch: Batch, stored: StoredSpan) -> bool:
        run = batch.runs.get(stored.message.trace_id, start_ns=0)
        if run is None:
            return True  # it is being deleted
        logs = stored.logs
        if len(logs) >= MOST_LOGS or any(log.event_name != RESULT for log in logs):
            return False
        annotations = annotations_with_results(stored.view(), self._messages, meant=stored.meant())
        if annotations is None:
            return False
        return batch.spans.set_scores(stored.id, stored.message, stored.side, annotations, run)

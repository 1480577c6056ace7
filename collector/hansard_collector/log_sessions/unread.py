"""Log records of coding agents of which no run was made: something about them is not understood."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from hansard_collector.dialects.engine.registry import is_coding_agent
from hansard_store.ingest.session_logs import newest_log_senders


@dataclass(frozen=True, slots=True)
class UnreadLogs:
    """Log records of one agent; none of them belongs to a run."""

    service: str
    records: int
    last_ns: int


def unread_logs(connection: apsw.Connection) -> list[UnreadLogs]:
    """Return the known agents among the newest log records without a single one in a run."""
    found: dict[str, UnreadLogs] = {}
    read: set[str] = set()
    for sender in newest_log_senders(connection):
        if not is_coding_agent(scope_name=sender.scope, service_name=sender.service):
            continue
        service = sender.service or sender.scope
        if sender.with_run:
            read.add(service)
        known = found.get(service)
        records = sender.records + (known.records if known else 0)
        last_ns = max(sender.last_ns, known.last_ns if known else 0)
        found[service] = UnreadLogs(service, records, last_ns)
    return [unread for service, unread in found.items() if service not in read]

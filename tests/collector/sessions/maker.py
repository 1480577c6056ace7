"""Log records as coding agents send them, and what became of them in the store.

Shapes from the vendors' references: Claude Code's *Monitoring* page, Codex's `codex-rs/otel`,
Gemini CLI's `telemetry/types.ts`. Times are seconds after START_NS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.derivation.stored_span import read_step
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import RunItem, list_runs
from tests.collector.ingesting import START_NS, Ingesting, pairs

SESSION = "7c0e9b5e-5f4c-4a53-9d1c-0d6a3f3b2a11"
CLAUDE_SCOPE = "com.anthropic.claude_code.events"
_SERVICES = {"claude": "claude-code", "codex": "codex_cli_rs", "gemini": "gemini-cli"}
_SCOPES = {"claude": CLAUDE_SCOPE, "codex": "codex_otel.log_only", "gemini": "gemini-cli"}


def at_ns(at_s: float) -> int:
    return START_NS + round(at_s * 1000) * 1_000_000


def timestamp(at_s: float) -> str:
    """Return an ISO time with ms; only equality matters."""
    return f"2026-05-28T20:{int(at_s) // 60:02}:{at_s % 60:06.3f}Z"


def claude(
    event: str, at_s: float, *, turn: str | None = "prompt-1", session: str = SESSION, **sent: Any
) -> LogRecord:
    """Return an event of Claude Code; dots in keys are written as two underscores."""
    attributes = {
        "user.id": "a1b2c3",
        "session.id": session,
        "organization.id": "org-1",
        "terminal.type": "vscode",
        "event.name": event,
        "event.timestamp": timestamp(at_s),
        "event.sequence": round(at_s * 10),
        **({"prompt.id": turn} if turn else {}),
        **_spelled(sent),
    }
    return _record(at_s, attributes, body=f"claude_code.{event}")


def codex(event: str, at_s: float, *, session: str = SESSION, **sent: Any) -> LogRecord:
    """Return an event of Codex: no body, no time of its own, all numbers as texts."""
    attributes = {
        "event.name": f"codex.{event}",
        "event.timestamp": timestamp(at_s),
        "conversation.id": session,
        "app.version": "0.169.0",
        "originator": "codex_cli_rs",
        "user.account_id": "acct-1",
        "model": "gpt-5.1-codex",
        "slug": "gpt-5.1-codex",
        **_spelled(sent),
    }
    record = _record(at_s, attributes)
    record.observed_time_unix_nano, record.time_unix_nano = record.time_unix_nano, 0
    return record


def gemini(
    event: str, at_s: float, *, turn: str | None = f"{SESSION}########0", **sent: Any
) -> LogRecord:
    """Return an event of Gemini CLI."""
    attributes = {
        "session.id": SESSION,
        "installation.id": "inst-1",
        "user.email": "dev@example.com",
        "event.name": event if event.startswith("gen_ai.") else f"gemini_cli.{event}",
        "event.timestamp": timestamp(at_s),
        **({"prompt_id": turn} if turn else {}),
        **_spelled(sent),
    }
    return _record(at_s, attributes, body=f"{event} happened.")


def _spelled(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("__", "."): value for key, value in sent.items()}


def _record(at_s: float, attributes: Mapping[str, Any], *, body: str = "") -> LogRecord:
    record = LogRecord(
        time_unix_nano=at_ns(at_s),
        observed_time_unix_nano=at_ns(at_s),
        severity_number=9,  # type: ignore[arg-type]  # enum by number
        attributes=pairs(attributes),
    )
    if body:
        record.body.CopyFrom(AnyValue(string_value=body))
    return record


def request(records: Iterable[LogRecord], agent: str = "claude") -> ExportLogsServiceRequest:
    made = ExportLogsServiceRequest()
    resource = made.resource_logs.add()
    resource.resource.attributes.extend(pairs({"service.name": _SERVICES.get(agent, agent)}))
    scoped = resource.scope_logs.add()
    scoped.scope.name = _SCOPES.get(agent, "")
    scoped.log_records.extend(records)
    return made


# ---- what became of them


def runs_of(store: Ingesting) -> list[RunItem]:
    """Return all runs, the oldest first."""
    return sorted(
        list_runs(store.db, RunFilter(), now_ns=START_NS, limit=500).items,
        key=lambda run: run.started_ns,
    )


def only_run(store: Ingesting) -> RunItem:
    (run,) = runs_of(store)
    return run


def steps_of(store: Ingesting, run: RunItem) -> list[tuple[Any, Normalised]]:
    """Return the steps of a run as (start_ns, end_ns, role, label or name) and their meaning."""
    rows = store.all(
        "SELECT id, sort_ns, end_ns, role, coalesce(label, name), parent_span_id FROM span "
        "WHERE trace_id = ? ORDER BY sort_ns, parent_span_id IS NOT NULL, end_ns, span_id",
        bytes.fromhex(run.run_id),
    )
    return [(row, read_step(store.db, row[0]).normal) for row in rows]


def calls_of(store: Ingesting, run: RunItem) -> list[Normalised]:
    return [normal for row, normal in steps_of(store, run) if row[3] == "llm"]


def tools_of(store: Ingesting, run: RunItem) -> list[Normalised]:
    return [normal for row, normal in steps_of(store, run) if row[3] == "tool"]


def picture(store: Ingesting) -> list[Any]:
    """Return everything about the runs and their steps that must not depend on arrival.

    Numbers of rows are left out, and so is when a run was last heard of.
    """
    return [
        (
            run.run_id, run.name, run.status, run.synthetic, run.started_ns, run.ended_ns,
            run.step_count, run.error_count, run.model_calls, run.tool_calls, run.tokens,
            run.cost_usd_nano, run.conversation_id, run.user_id, run.agent_name, run.first_input,
            run.last_output, run.models,
            [(row[1:], normal) for row, normal in steps_of(store, run)],
            placed_logs(store, run.run_id),
        )
        for run in runs_of(store)
    ]  # fmt: skip


def placed_logs(store: Ingesting, run_id: str) -> Sequence[Any]:
    """Return which records stand on which steps of a run."""
    return store.all(
        "SELECT mac, ordinal, span_id FROM log_record WHERE trace_id = ? ORDER BY mac, ordinal",
        bytes.fromhex(run_id),
    )

"""A hook event as an OTLP log record, in JSON: `hansard.hook.*`, a dialect of session records.

The collector joins the records of one session to one run (`hansard_collector.log_sessions.hooks`).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hansard._hooks.event import HookEvent
    from hansard._hooks.risk_score import HookEvaluation
    from hansard._hooks.settings import HookSettings
    from hansard_compiler.redaction.redactor import Redactor

PREFIX = "hansard.hook."
SCOPE = "hansard.hooks"
_MOST_CHARS = 256 * 1024  # of one value
_METADATA_ONLY, _FULL = "metadata_only", "full_payloads"


def agent_of(event: HookEvent, name: str | None) -> str:
    """Return the name of the agent that sent an event."""
    if name:
        return name
    if event.name in ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent"):
        return "gemini-cli"
    is_claude = "CLAUDECODE" in os.environ or "CLAUDE_PROJECT_DIR" in os.environ
    path = event.fields.get("transcript_path")
    if isinstance(path, str) and "/.codex/" in path:
        return "codex"
    if is_claude or (isinstance(path, str) and "/.claude/" in path):
        return "claude-code"
    return "claude-code" if event.name[:1].isupper() else "agent"


def make_record(
    kind: str,
    event: HookEvent,
    settings: HookSettings,
    *,
    time_ns: int,
    agent: str,
    call_id: str,
    evaluation: HookEvaluation | None = None,
    redacts: bool = True,
) -> bytes:
    """Return the ExportLogsServiceRequest of one event, without what the retention forbids.

    `redacts` is False for a server that does it before anything of it reaches a disk.
    """
    metadata: dict[str, Any] = {
        "session.id": event.session,
        "tool_use_id": call_id,
        "tool_name": event.tool,
        "hansard.hook.event": event.name,
    }
    for key in ("agent_id", "agent_type", "permission_mode", "source", "reason", "model"):
        value = event.fields.get(key)
        if isinstance(value, str):
            metadata[key] = value
    if event.prompt_id:
        metadata["hansard.hook.prompt_id"] = event.prompt_id
    if evaluation is not None:
        metadata |= {
            "hansard.hook.score": round(evaluation.score, 4),
            "hansard.hook.threshold": evaluation.threshold,
            "hansard.hook.warned": evaluation.is_warned,
            "hansard.hook.rule": evaluation.reason,
            "hansard.hook.classifier": evaluation.classifier,
            "hansard.hook.classifier_step": evaluation.step,
            "hansard.hook.fallback": evaluation.fallback,
        }
    content, failed = _content(kind, event)
    if failed is not None:
        metadata["success"] = not failed
    if settings.retention == _METADATA_ONLY:
        content = {}
    elif redacts and settings.retention != _FULL and content:
        redactor = redactor_of(settings)
        content = {key: redactor.redact_text(one, key=key).text for key, one in content.items()}
    values = {key: value for key, value in {**metadata, **content}.items() if value != ""}
    return _request(f"{PREFIX}{kind}", values, time_ns=time_ns, agent=agent)


def _content(kind: str, event: HookEvent) -> tuple[dict[str, str], bool | None]:
    """Return the recorded texts of an event, and whether its tool failed; None: unknown."""
    fields = event.fields
    found = {"cwd": event.cwd}
    if event.tool and event.tool_input is not None:
        found["tool_input"] = _json(event.tool_input)
    failed = None
    if kind == "post_tool_use":
        response = fields.get("tool_response", fields.get("tool_result", fields.get("output")))
        if response is not None:
            found["tool_response"] = _json(response)
        failed = _has_failed(event, response)
        if failed:
            found["error"] = _error_of(event, response)
    for key in ("prompt", "last_assistant_message"):
        if isinstance(fields.get(key), str):
            found[key] = fields[key]
    return {key: value[:_MOST_CHARS] for key, value in found.items()}, failed


def _has_failed(event: HookEvent, response: Any) -> bool:
    if event.name == "PostToolUseFailure" or isinstance(event.fields.get("error"), str):
        return True
    if not isinstance(response, dict):
        return False
    code = response.get("exit_code", response.get("exitCode", response.get("returncode", 0)))
    return (
        response.get("is_error") is True
        or response.get("isError") is True
        or response.get("success") is False
        or response.get("interrupted") is True
        or bool(response.get("error"))
        or (isinstance(code, int) and code != 0)
    )


def _error_of(event: HookEvent, response: Any) -> str:
    error = event.fields.get("error")
    if isinstance(error, str) and error:
        return error
    if isinstance(response, dict):
        for key in ("error", "stderr", "message"):
            if isinstance(response.get(key), str) and response[key]:
                return str(response[key])
    return "failed"


def redactor_of(settings: HookSettings) -> Redactor:
    """Return the redactor of the data folder; about 150 ms in a new process."""
    from pathlib import Path

    from hansard._runtime.data_folder import key_or_random
    from hansard_compiler.redaction.redactor import Redactor

    return Redactor(key_or_random(Path(settings.data)))


def _json(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _request(name: str, values: dict[str, Any], *, time_ns: int, agent: str) -> bytes:
    import json

    record = {
        "timeUnixNano": str(time_ns),
        "observedTimeUnixNano": str(time_ns),
        "severityNumber": 13 if values.get("hansard.hook.warned") else 9,
        "eventName": name,
        "body": {"stringValue": name},
        "attributes": [{"key": key, "value": _value(value)} for key, value in values.items()],
    }
    resource = [{"key": "service.name", "value": {"stringValue": agent}}]
    request = {
        "resourceLogs": [
            {
                "resource": {"attributes": resource},
                "scopeLogs": [{"scope": {"name": SCOPE}, "logRecords": [record]}],
            }
        ]
    }
    return json.dumps(request, ensure_ascii=True).encode()


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}

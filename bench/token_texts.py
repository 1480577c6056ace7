"""Texts as agents carry them, the same on every machine."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

_ROOT = Path(__file__).parent.parent

_DIALOGUE = (
    '"You said the meeting was on Thursday," she began, turning the page, "and I believed you '
    'until the minutes arrived. Who changed the date, and why was nobody told?" He shrugged. '
    '"The clerk wrote down what was agreed. If we remember it differently, the record decides."\n'
)
_CHINESE = "我们的目标是让每个人都能理解代理所看到的内容。系统记录每一个决定,并保存完整的上下文。"
_JAPANESE = (
    "エージェントが何を見て、何を決めたのかを正確に記録し、後から誰でも確認できるようにします。"
)
_RUSSIAN = (
    "Система записывает каждое решение агента и сохраняет полный контекст, чтобы понять причину. "
)
_GERMAN = (
    "Das System zeichnet jede Entscheidung des Agenten auf und bewahrt den ganzen Zusammenhang. "
)
_LOG = "2026-11-22T12:50:31.482Z WARN  [worker-7] retry 3/5 after 1.6s: POST /v1/traces -> 503\n"


def _digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def _spans() -> str:
    spans = [
        {
            "trace_id": _digest(number)[:16].hex(),
            "span_id": _digest(number)[16:24].hex(),
            "name": "chat gpt-4o",
            "start_ns": 1_763_800_000_000_000_000 + number * 7_654_321,
            "attributes": {"gen_ai.usage.input_tokens": number * 37, "ok": True},
        }
        for number in range(60)
    ]
    return json.dumps(spans)


def _table() -> str:
    rows = (f"| row {n} | {n * n} | `{_digest(n)[:3].hex()}` | yes |" for n in range(80))
    return "| name | square | code | ok |\n|---|---|---|---|\n" + "\n".join(rows)


def _file(path: str) -> str:
    return (_ROOT / path).read_text(encoding="utf-8")


TEXTS: list[tuple[str, str]] = [
    ("Python source", _file("compiler/hansard_compiler/canonical.py")),
    ("Markdown documentation", _file("docs/retention.md")),
    ("HTML template", _file("web/hansard_web/templates/runs.html")),
    ("English dialogue", _DIALOGUE * 20),
    ("JSON spans with ids", _spans()),
    ("log lines", _LOG * 40),
    ("Markdown table", _table()),
    ("Chinese", _CHINESE * 20),
    ("Japanese", _JAPANESE * 20),
    ("Russian", _RUSSIAN * 20),
    ("German", _GERMAN * 20),
    ("base64", base64.b64encode(b"".join(map(_digest, range(150)))).decode()),
]

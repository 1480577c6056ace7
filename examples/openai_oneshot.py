"""One call of OpenAI, with a context that was chosen for it: what went in, what did not, and why.

    hansard serve &
    export OPENAI_API_KEY=…                  # and OPENAI_BASE_URL, for another server of that API
    python examples/openai_oneshot.py --model gpt-… "Where is order 7?"
    python examples/openai_oneshot.py --offline      # a model of this machine, and no key

The official package sends (`pip install 'hansard[openai]'`). The bytes of both directions are kept,
so that the step can be replayed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import local_models

import hansard
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection

DESK = Path(__file__).parent / "desk"
SYSTEM = {
    "id": "instructions",
    "kind": "system",
    "content": "Answer in one sentence, from the notes of the desk alone.",
    "source_ref": {"source_type": "app_state"},
}


def notes() -> list[dict[str, Any]]:
    """Two notes of the desk as candidates; the budget has room for one of them."""
    return [
        {
            "id": path.name,
            "kind": "file",
            "content": path.read_text(encoding="utf-8"),
            "source_ref": {"source_type": "file", "uri": path.name},
            "created_at": datetime.fromtimestamp(path.stat().st_mtime, UTC),
        }
        for path in (DESK / "orders.md", DESK / "almanac.md")
    ]


def ask(question: str, adapter: Adapter, model: str) -> hansard.ModelAnswer:
    """Compile once, call once."""
    with hansard.start_run("oneshot", "support", question) as run:
        compiled = run.compile_step(
            [SYSTEM, *notes(), {"role": "user", "content": question}],
            model=model,
            provider=adapter,
            token_budget=600,
            response_reserve=200,
            task_summary=question,
        )
        for receipt in compiled.receipts:
            sys.stdout.write(f"{compiled.why(receipt.item_id)}\n")
        said = run.call_model(compiled, max_output_tokens=200)
        run.end(output=said.text)
    return said


# ---- without a key


def answer_offline(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as OpenAI's Responses API does, with the line of the input that fits best."""
    texts = [str(part["text"]) for item in request["input"] for part in item["content"]]
    asked = set(re.findall(r"\w+", texts[-1].lower()))
    lines = [line.strip("-* ") for text in texts[:-1] for line in text.splitlines()]
    best = max(lines, key=lambda line: len(asked & set(re.findall(r"\w+", line.lower()))))
    content = [{"type": "output_text", "text": best, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": request["model"],
        "status": "completed",
        "output": [{**message, "content": content}],
        "usage": {
            "input_tokens": sum(map(len, texts)) // 4,
            "output_tokens": len(best) // 4,
            "total_tokens": (sum(map(len, texts)) + len(best)) // 4,
        },
    }


@contextmanager
def connection(*, offline: bool) -> Iterator[Connection]:
    """Reach the provider that the environment names, or one that lives as long as this block."""
    if not offline:
        yield Connection()
        return
    with local_models.serving({"/v1/responses": answer_offline}) as base_url:
        yield Connection(api_key="none", base_url=f"{base_url}/v1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", nargs="?", default="Where is order 7?")
    parser.add_argument("--model", default="gpt-6-luna")
    parser.add_argument("--offline", action="store_true", help="ask a model of this machine")
    parser.add_argument("--embedded", action="store_true", help="store without a server")
    asked = parser.parse_args()
    hansard.init(service_name="oneshot", embedded=asked.embedded)
    try:
        with connection(offline=asked.offline) as reached:
            adapter = adapter_for("openai", AdapterSettings(reached))
            said = ask(asked.question, adapter, asked.model)
    except HansardError as error:  # no key, no package, no answer: it says what to do
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(
        f"{said.text}\n{said.estimated_input_tokens} tokens estimated, {said.tokens.input} billed\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

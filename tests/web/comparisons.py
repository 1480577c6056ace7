"""A store with runs to be compared: an agent twice, recordings of libraries, a compacted talk."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.store.empty import empty_store
from tests.web.compiles import RULES, candidate, compile_span, compiled, file, quillbook, ref_of
from tests.web.traces import Trace, asks, returns, said, submit

LEFT, RIGHT, TALK = "a1" * 16, "b2" * 16, "c3" * 16
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
AGNO_RUN, FRAMEWORK_RUN = "9688853cbc97d546d612348845e7c67a", "3be5ab1348e10a15d0b2f7138d463502"
RECORDINGS = Path(__file__).parent.parent / "fixtures" / "recordings"
WROTE_A = (
    "The failing test expects to_cents(0.125) to be 0.13. This looks like a display problem in "
    "the invoice template. I will change render_total and leave the tests as they are."
)
WROTE_B = (
    "The failing test expects to_cents(0.125) to be 0.13. Python's round() sends ties to the even "
    "neighbour. I will change to_cents and leave the signature and the tests as they are."
)


def step(run: str, number: int) -> str:
    return f"{run}-{number:016x}"


class World:
    """One store, filled once, with an app over it and the real pipeline."""

    def __init__(self, path: Path, *, keeps_payloads: bool = True) -> None:
        self._keeps_payloads = keeps_payloads
        self._added = itertools.count(1)
        self.folder = empty_store(path)
        retention = RetentionPolicy("full_payloads", Redactor(self.folder.key()))
        self.pipeline = Pipeline(self.folder, retention)
        self.pipeline.start()
        self.app = create_app(self.folder, self.pipeline, WebSettings(retention="full_payloads"))
        self.http = TestClient(
            self.app,
            base_url="http://localhost",
            follow_redirects=False,
            raise_server_exceptions=False,
        )

    def fill(self) -> None:
        self.put_run(LEFT, "mender", budget=2_600, patch={"path": "invoice.py", "hunks": 4})
        self.put_run(
            RIGHT,
            "mender",
            budget=3_400,
            patch={"path": "money.py", "hunks": 2, "dry_run": False},
            is_better=True,
        )
        self.put_talk()
        for name in ("agno", "agent_framework"):
            for path in sorted((RECORDINGS / name).glob("*.binpb")):
                signal = Signal(path.suffixes[-2].removeprefix("."))
                submit(self.pipeline, signal, path.read_bytes())

    def new_run(self) -> str:
        """An id for a run that a test adds: the world is shared, and no two tests may share one."""
        return f"ad{next(self._added):030x}"

    def close(self) -> None:
        self.http.close()
        self.pipeline.close()
        self.app.state.site.close()

    def put_run(
        self,
        run: str,
        agent: str,
        *,
        budget: int,
        patch: Mapping[str, Any],
        is_better: bool = False,
    ) -> None:
        """Store an agent that looks, compiles, asks a model, patches; the better one looks more."""
        trace = Trace(run)
        trace.agent(1, name=agent, duration_s=9 if is_better else 14)
        trace.tool(4, 1, "list_files", "call_1", 0.01, result="money.py invoice.py")
        if is_better:
            trace.tool(7, 1, "search_code", "call_2", 0.05, result=HOSTILE)
        items = quillbook()
        weights: dict[str, Any] = {}
        rules = [{**RULES[0], "metadata": {"version": "6"}}]
        if is_better:
            items.append(
                candidate("earlier-fix", "memory", "Totals are rounded once, at the end, in cents.",
                          {"source_type": "memory", "title": "memory, run a7c3190e"},
                          importance_score=0.9)
            )  # fmt: skip
            items.append(candidate("notes", "file", f"round cents {HOSTILE}", file(HOSTILE)))
            weights = {"weights": {"freshness": 0.15}}
            rules = [{**RULES[0], "metadata": {"version": "7"}}]
        result = compiled(items, budget=budget, run=run, rules=rules, **weights)
        payloads = compile_span(trace, result, 2, 1, 0.1)
        wire = json.dumps({"model": "gpt-4o-mini", "input": result.payload["messages"]}).encode()
        payloads[ref_of(wire)] = wire
        rules_text = "You are mender, a careful engineer."
        wrote = WROTE_B if is_better else WROTE_A
        trace.chat(
            3, 1,
            [said("system", rules_text), said("user", "Make the failing test pass."),
             said("user", f"Budget {budget}")],
            asks("apply_patch", f"call_{run[:4]}", patch, wrote),
            0.2,
            tokens=(result.token_allocation["used"], 40 if is_better else 55),
            hansard__compilation__id=result.id,
            hansard__request__ref=ref_of(wire),
        )  # fmt: skip
        trace.tool(
            5, 1, "apply_patch", f"call_{run[:4]}", 3,
            result=json.dumps({"ok": is_better, "files": [patch["path"]]}),
            gen_ai__tool__call__arguments=json.dumps(dict(patch)),
        )  # fmt: skip
        for data in payloads.values() if self._keeps_payloads else ():
            answer = self.http.put(f"/v1/payloads/{ref_of(data)}", content=data)
            assert answer.is_success, answer.text
        trace.send(self.pipeline)

    def put_talk(self) -> None:
        """Store a conversation of four turns that is compacted before the last one."""
        trace = Trace(TALK)
        trace.agent(1, duration_s=12, name="talker")
        history = [said("system", "Be brief.")]
        for turn in range(3):
            history = [
                *history,
                said("user", f"Question {turn}"),
                said("assistant", f"Answer {turn}"),
            ]
            trace.chat(2 + turn, 1, history[:-1], history[-1], 1 + turn, duration_s=0.5)
        trace.span(8, 1, "claude_code.compaction", 5, 1, trigger="auto")
        short = [history[0], said("user", "So far: three questions were answered.")]
        trace.chat(9, 1, [*short, said("user", "Question 3")], said("assistant", "Answer 3"), 7)
        trace.tool(10, 1, "look", "call_9", 8, result=returns("call_9", "nothing"))
        trace.send(self.pipeline)


def made_world(path: Path, *, keeps_payloads: bool = True) -> Iterator[World]:
    world = World(path, keeps_payloads=keeps_payloads)
    world.fill()
    yield world
    world.close()

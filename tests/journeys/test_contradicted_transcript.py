"""A false claim in a transcript: found, corrected with its steps, and counted once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.collector.evaluation.evaluating import tool
from tests.collector.ingesting import span, traces
from tests.journeys.processes import Serving, environment, hansard, serving

CLAIM = "All tests pass now."
TRACE = bytes(range(16))
AGENT = """
import hansard

hansard.init(service_name="coder", embedded=True)


@hansard.tool
def run_tests() -> str:
    raise RuntimeError("2 failed, 3 passed")


def loop(messages):
    try:
        run_tests()
    except RuntimeError:
        pass
    return [{"role": "assistant", "content": "All tests pass now."}]


with hansard.start_run(agent_name="coder", conversation_id="support-42"):
    hansard.transcript("support-42").run("Make the tests pass.", loop)
hansard.shutdown()
"""


def told(served: Serving, path: str) -> Any:
    return json.loads(served.get(path))


def evaluation(data: Path) -> dict[str, Any]:
    """Run a cycle of the heartbeat and return what its evaluation counted."""
    ended = hansard("heartbeat", "--once", "--json", "--data", str(data))
    assert ended.returncode == 0, ended.stderr
    phases = {one["name"]: one for one in json.loads(ended.stdout)["phases"]}
    assert phases["evaluation"]["status"] == "done"
    figures: dict[str, Any] = phases["evaluation"]["figures"]
    return figures


@pytest.mark.covers("EL-01", "EL-05", "EL-07")
def test_a_false_claim_in_a_transcript_is_corrected_and_counted_once(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", AGENT], capture_output=True, text=True,
                           env=environment(HANSARD_DATA=str(tmp_path)), timeout=240)  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")

    first, second = evaluation(tmp_path), evaluation(tmp_path)

    assert (first["new"]["contradicted"], first["corrections"], first["seen_again"]) == (1, 1, 0)
    assert (second["new"]["contradicted"], second["corrections"], second["seen_again"]) == (0, 0, 1)
    with serving(tmp_path) as served:
        [verdict] = told(served, "/v1/evaluations?verdict=contradicted")["items"]
        [correction] = told(served, "/v1/memory?type=correction")["items"]
        run = verdict["claim"]["run_id"]
        steps = {one["step_id"]: one for one in told(served, f"/v1/runs/{run}/steps")["items"]}
    assert (verdict["claim"]["source"], verdict["claim"]["sentence"]) == ("message", CLAIM)
    assert verdict["claim"]["message_id"]
    assert verdict["count"] == 2  # seen by both cycles, written once
    assert verdict["correction_id"] == correction["memory_id"]
    assert correction["version"] == 1
    assert correction["metadata"]["claim_step"] == verdict["claim"]["step_id"]
    assert correction["source_step_ids"] == verdict["evidence"]["step_ids"]
    [evidence] = verdict["evidence"]["step_ids"]
    assert steps[evidence]["tool_name"] == "run_tests"
    assert steps[evidence]["status"] == "error"
    assert verdict["claim"]["step_id"] in steps


@pytest.mark.covers("EL-01", "EL-05")
def test_evidence_that_arrives_after_the_transcript_counts(tmp_path: Path) -> None:
    """A transcript is stored at once; the spans of its run may be minutes behind."""
    with serving(tmp_path) as served:
        append(served, CLAIM)
        early = evaluation(tmp_path)
        post(served, "/v1/traces", run_of_tests().SerializeToString(), "application/x-protobuf")
        late, after = evaluation(tmp_path), evaluation(tmp_path)
        [verdict] = told(served, "/v1/evaluations")["items"]
        [correction] = told(served, "/v1/memory?type=correction")["items"]

    assert (early["new"]["claimed"], early["corrections"]) == (1, 0)
    assert (late["new"]["contradicted"], late["corrections"]) == (1, 1)
    assert (after["new"]["contradicted"], after["corrections"], after["seen_again"]) == (0, 0, 1)
    assert (verdict["verdict"], verdict["claim"]["source"]) == ("contradicted", "message")
    assert verdict["correction_id"] == correction["memory_id"]


def append(served: Serving, text: str) -> None:
    """Append an answer to a conversation, as a program does within a step of a run."""
    made = post(served, "/v1/transcripts", b'{"conversation": "support-43"}', "application/json")
    message = {"role": "assistant", "content": text}
    told = {"messages": [{"message": message, "step_id": f"{TRACE.hex()}-{999:016x}"}]}
    path = f"/v1/transcripts/{json.loads(made)['conversation_id']}"
    post(served, path, json.dumps(told).encode(), "application/json")


def post(served: Serving, path: str, body: bytes, media_type: str) -> bytes:
    request = urllib.request.Request(f"{served.http}{path}", body, {"Content-Type": media_type})
    with urllib.request.urlopen(request, timeout=30) as response:
        answer: bytes = response.read()
        return answer


def run_of_tests() -> ExportTraceServiceRequest:
    """Return a run with one failed call of a tool, which ended before the answer."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder"}
    root = span(999, name="invoke_agent coder", attributes=agent)
    failed = tool("run_tests", 1, error="2 failed, 3 passed")
    failed.parent_span_id = root.span_id
    ended_ns = time.time_ns() - 60 * 10**9
    for one in (root, failed):
        one.trace_id = TRACE
        one.start_time_unix_nano, one.end_time_unix_nano = ended_ns - 10**9, ended_ns
    return traces((root, failed))

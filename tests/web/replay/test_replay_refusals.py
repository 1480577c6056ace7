"""What is not replayed says why, with a reason from a closed list, and is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

import hansard
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.request_fields import FIELDS
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.payloads import blob_path
from hansard_store.database.connections import open_for_maintenance
from hansard_store.replays import add_replay, get_replay
from hansard_web.app.config import WebSettings, parse_token
from hansard_web.app.readers import Readers
from hansard_web.replay.engine import Holder, Replays, is_held
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.transport.wires import AssertingWire, RecordedWire
from hansard_web.sidecar.recorder import Outlet
from tests.instrumentation.clients.asking import CHAT, MESSAGES
from tests.instrumentation.clients.provider import SECRET, json_reply
from tests.store.by_hand import triggers_dropped
from tests.store.test_replays import row
from tests.web.replay.stage import ITEMS, SCRIPT, Stage, item, staging

Json = dict[str, Any]
TRACE = "ab" * 16


@pytest.fixture
def own_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage that a test may break."""
    with staging(tmp_path / "data", monkeypatch) as made:
        yield made


def tell(stage: Stage, span_id: str, **fields: Any) -> str:
    """Send one span as an existing OTel setup would; returns its step id."""
    attributes = [
        {"key": key, "value": {"stringValue": value}}
        for key, value in fields.pop("attributes", {}).items()
    ]
    span = {
        "traceId": TRACE,
        "spanId": span_id,
        "name": "chat m",
        "kind": 3,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": attributes,
        **fields,
    }
    body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}
    assert stage.post("/v1/traces", body).is_success
    return f"{TRACE}-{span_id}"


FOREIGN = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-6-luna",
    "gen_ai.input.messages": json.dumps(
        [
            {"role": "user", "parts": [{"type": "text", "content": "Where is 7?"}]},
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {"k": 7}}],
            },
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": "posted"}],
            },
            {"role": "user", "parts": [{"type": "text", "content": "And 8?"}]},
        ]
    ),
    "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "get"}]),
}


# ---- the step


def test_unknown_ids_are_404_and_ambiguous_ones_409(stage: Stage) -> None:
    stage.compiled_call()
    tell(stage, "1" * 16, attributes=FOREIGN)
    tell(stage, "1" * 15 + "2", attributes=FOREIGN)

    unknown = stage.post("/v1/replay", {"step_id": "ff" * 16 + "-" + "ff" * 8})
    ambiguous = stage.post("/v1/replay", {"step_id": f"{TRACE}-11111111"})

    assert (unknown.status_code, ambiguous.status_code) == (404, 409)
    assert stage.client.get("/v1/replay/" + "0" * 32).status_code == 404


@pytest.mark.covers("AC-05")
@pytest.mark.parametrize("recorded", [False, True])
def test_other_kinds_of_steps_do_not_replay_and_a_tool_is_not_run(
    recorded: bool, stage: Stage
) -> None:
    tool = tell(
        stage, "3" * 16, name="execute_tool get",
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"},
    )  # fmt: skip

    told = stage.refused(tool, recorded=recorded)

    assert (told["reason"], told["role"]) == ("kind", "tool")
    assert stage.get(f"/v1/replay/{told['replay_id']}")["state"] == "refused"


@pytest.mark.covers("AC-05")
def test_a_step_that_has_not_ended_does_not_replay(stage: Stage) -> None:
    step_id = tell(stage, "4" * 16, endTimeUnixNano="0", attributes=FOREIGN)

    assert stage.refused(step_id)["reason"] == "open_step"


@pytest.mark.covers("RP-03")
def test_a_call_without_bytes_is_rebuilt_whole_and_every_field_that_it_lacks_is_named(
    stage: Stage,
) -> None:
    step_id = tell(stage, "5" * 16, attributes=FOREIGN)
    change = {"op": "set_model", "model": "gpt-6-mini"}

    told = stage.refused(step_id)
    shown = stage.preview(step_id, change)
    changed = stage.replay(step_id, mutations=[change])

    assert told["reason"] == "not_recorded"
    assert (changed["state"], shown["basis"], shown["is_rebuilt"]) == ("done", "telemetry", True)
    assert any("rebuilt from telemetry" in label for label in changed["labels"])
    sent = stage.provider.received[-1].json
    assert sent == {
        "model": "gpt-6-mini",
        "input": [
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "Where is 7?"}]},
            {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{"k":7}'},
            {"type": "function_call_output", "call_id": "c1", "output": "posted"},
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "And 8?"}]},
        ],
        "tools": [{"type": "function", "name": "get", "description": "",
                   "parameters": {"type": "object", "properties": {}}, "strict": False}],
        "store": False,
    }  # fmt: skip
    [note] = [one for one in changed["notes"] if "they are not sent" in one]
    assert shown["notes"] == changed["notes"]
    for name in FIELDS["responses"] - sent.keys():
        assert f" {name}," in note or f": {name}," in note or f" {name};" in note, name


@pytest.mark.covers("RP-03")
def test_a_rebuilt_call_keeps_every_field_of_its_tools(stage: Stage) -> None:
    tool = {
        "type": "function", "name": "get", "description": "Finds an order.", "strict": True,
        "parameters": {
            "type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"],
            "additionalProperties": False,
        },
    }  # fmt: skip
    told = {**FOREIGN, "gen_ai.tool.definitions": json.dumps([tool])}
    step_id = tell(stage, "5b" * 8, attributes=told)

    stage.replay(step_id, mutations=[{"op": "set_model", "model": "gpt-6-mini"}])

    assert stage.provider.received[-1].json["tools"] == [tool]


def test_what_telemetry_has_of_other_fields_is_sent_and_not_called_unknown(stage: Stage) -> None:
    more = {"openai.request.service_tier": "flex", "gen_ai.request.top_k": "4"}
    step_id = tell(stage, "6a" * 8, attributes={**FOREIGN, **more})

    shown = stage.preview(step_id, {"op": "set_model", "model": "gpt-6-mini"})
    stage.replay(step_id, mutations=[{"op": "set_model", "model": "gpt-6-mini"}])

    assert stage.provider.received[-1].json["service_tier"] == "flex"
    assert not any("service_tier" in one for one in shown["notes"])


# ---- its bytes


def large_call(stage: Stage) -> tuple[str, Path]:
    """Make a call whose request lies in a file; returns the step and the file."""
    long = item("long", content="word " * 30_000)
    step_id = stage.compiled_call(items=[*ITEMS, long], token_budget=90_000)
    ref = stage.step(step_id)["attributes"]["hansard.request.ref"]
    return step_id, blob_path(stage.folder, bytes.fromhex(ref.removeprefix("sha256:")))


@pytest.mark.covers("AC-05")
def test_a_payload_file_that_was_deleted_or_changed_refuses(own_stage: Stage) -> None:
    step_id, file = large_call(own_stage)
    kept = file.read_bytes()

    file.write_bytes(kept.replace(b"word", b"WORD", 1))
    changed = own_stage.refused(step_id, script=SCRIPT)
    file.unlink()
    gone = own_stage.refused(step_id, recorded=True)

    assert changed["reason"] == "hash_mismatch"
    assert gone["reason"] == "bytes_missing"


def test_secrets_that_were_cut_out_before_storing_refuse(stage: Stage) -> None:
    step_id = stage.http_call(_with_secret())

    told = stage.refused(step_id)

    assert told["reason"] == "secrets_cut"
    assert SECRET not in json.dumps(stage.get(f"/v1/replay/{told['replay_id']}"))


def _with_secret() -> Any:
    said = [{"role": "user", "content": f"use {SECRET} please"}]
    return replace(MESSAGES, arguments={**MESSAGES.arguments, "messages": said})


@pytest.mark.covers("AC-05")
def test_bytes_that_the_collector_redacted_refuse(own_stage: Stage) -> None:
    told = own_stage.outlet
    full = replace(told.retention, mode=RetentionMode.FULL_PAYLOADS)
    own_stage.outlet = Outlet(told.folder, told.ingest, full)
    step_id = own_stage.http_call(_with_secret())

    refused = own_stage.refused(step_id)

    assert refused["reason"] in ("bytes_redacted", "secrets_cut")


@pytest.mark.covers("AC-05", "RC-24")
def test_in_metadata_only_it_says_so_in_api_preview_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staging(tmp_path / "data", monkeypatch) as bare:
        bare.serve(WebSettings(retention="metadata_only"))
        step_id = bare.http_call(CHAT)

        told = bare.refused(step_id)
        changed = bare.refused(step_id, mutations=[{"op": "set_model", "model": "m"}])
        preview = bare.post("/v1/replay/preview", {"step_id": step_id})

        row = bare.get(f"/v1/replay/{told['replay_id']}")
    assert told["reason"] == changed["reason"] == "metadata_only"
    assert preview.json()["error"]["details"]["reason"] == "metadata_only"
    assert (row["state"], row["recipe"]) == ("refused", None)
    assert "keeps no content" in row["reason_text"]


def test_a_recording_that_is_not_there_is_not_made_up(stage: Stage) -> None:
    step_id = stage.http_call(CHAT)
    ref = stage.step(step_id)["attributes"]["hansard.request.ref"]
    bare = tell(
        stage, "6" * 16,
        attributes={**FOREIGN, "hansard.request.ref": ref, "url.path": "/v1/chat/completions"},
    )  # fmt: skip

    assert stage.refused(bare, recorded=True)["reason"] == "no_recording"


def test_only_the_promised_bytes_pass_the_wire() -> None:
    data = b'{"model":"m"}'
    promised = "sha256:" + "ab" * 32
    wire = AssertingWire(RecordedWire("openai", b"{}"), promised, "/responses")

    with pytest.raises(NotReplayable) as other:
        wire.post("/responses", data, stream=False)
    with pytest.raises(NotReplayable) as elsewhere:
        wire.post("/chat/completions", data, stream=False)

    assert {other.value.reason, elsewhere.value.reason} == {ReplayReason.HASH_MISMATCH}


# ---- who is to be asked


def test_without_a_key_nothing_is_sent_and_a_preview_still_shows_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_id = stage.compiled_call("anthropic")
    asked = len(stage.provider.received)
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    told = stage.refused(step_id)
    shown = stage.preview(step_id)

    assert told["reason"] == shown["refusal"]["reason"] == "key_missing"
    assert "ANTHROPIC_API_KEY" in told["message"]
    assert shown["request"]["same"] is True
    assert len(stage.provider.received) == asked


def test_a_call_that_went_elsewhere_is_not_sent_with_our_key_unless_asked(
    own_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = own_stage
    stage.serve(WebSettings())
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stage.provider.address}/gateway/v1")

    told = stage.refused(step_id)
    stage.provider.replies.append(json_reply({"id": "r", "output": []}))
    sent = stage.replay(step_id, allow_other_address=True)

    assert told["reason"] == "other_address"
    assert len(stage.provider.received) == asked + 1
    assert stage.provider.received[-1].path == "/gateway/v1/responses"
    assert sent["state"] == "done"


def test_a_local_server_is_asked_again_where_it_is_and_without_a_key(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_id = stage.http_call(CHAT)  # its client calls every server OpenAI's
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")

    told = stage.replay(step_id)

    assert told["same_request"] is True
    assert "key" not in stage.provider.received[-1].headers["authorization"]


def test_an_address_in_a_record_is_never_called(stage: Stage) -> None:
    ref = stage.step(stage.http_call(CHAT))["attributes"]["hansard.request.ref"]
    planted = tell(
        stage, "7" * 16,
        attributes={
            **FOREIGN,
            "hansard.request.ref": ref,
            "url.path": "/v1/chat/completions",
            "server.address": "attacker.example",
        },
    )  # fmt: skip

    told = stage.refused(planted)

    assert told["reason"] == "other_address"
    assert "attacker.example" in told["message"]


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("openai", "/v1/files"),
        ("openai", "/v1/fine_tuning/jobs"),
        ("openai", "/v1/chat/completions/../../organization/invites"),
        ("openai", "/v1/chat/completions?x=/responses"),
        ("openai", "/v1//attacker.example/responses"),
        ("openai_compatible", "/v1/../api/delete"),
        ("anthropic", "/v1/messages/batches"),
        ("anthropic", "/v1/organizations/api_keys"),
    ],
)
def test_a_record_cannot_spend_our_key_on_another_path(
    stage: Stage, provider: str, path: str
) -> None:
    ref = stage.step(stage.http_call(CHAT))["attributes"]["hansard.request.ref"]
    told = {**FOREIGN, "gen_ai.provider.name": provider, "hansard.request.ref": ref}
    planted = tell(stage, os.urandom(8).hex(), attributes={**told, "url.path": path})
    asked = len(stage.provider.received)

    assert stage.refused(planted)["reason"] == "provider_unknown"
    assert stage.refused(planted, allow_other_address=True)["reason"] == "provider_unknown"
    assert len(stage.provider.received) == asked


def test_a_provider_without_an_adapter_or_an_address_is_named(stage: Stage) -> None:
    ref = stage.step(stage.http_call(CHAT))["attributes"]["hansard.request.ref"]
    azure = tell(
        stage, "8" * 16,
        attributes={**FOREIGN, "gen_ai.provider.name": "aws.bedrock", "hansard.request.ref": ref,
                    "url.path": "/invoke", "server.address": "bedrock.example"},
    )  # fmt: skip
    local = stage.compiled_call("openai_compatible")
    scripted = stage.compiled_call()
    readers = Readers(stage.folder)
    bare = Replays(readers, stage.outlet)
    try:
        with pytest.raises(NotReplayable) as unset:
            bare.plan(_asked(local))
    finally:
        readers.close()

    assert stage.refused(azure)["reason"] in ("provider_unknown", "other_address")
    assert unset.value.reason is ReplayReason.PROVIDER_NOT_CONFIGURED
    assert stage.refused(scripted)["reason"] == "provider_not_configured"


def _asked(step_id: str) -> Any:
    return ReplayInput(step_id=step_id)


# ---- what is to be changed


@pytest.mark.parametrize(
    ("mutation", "reason"),
    [
        ({"op": "fly"}, "mutation_invalid"),
        ({"op": "set_model"}, "mutation_invalid"),
        ({"op": "set_weights", "weights": {"luck": 1.0}}, "mutation_invalid"),
        ({"op": "set_policy", "rules": [{"id": "x"}]}, "mutation_invalid"),
        ({"op": "add_item", "item": {"id": "orders", "kind": "file", "content": "x"}},
         "mutation_invalid"),
        ({"op": "set_provider", "provider": "anthropic"}, "mutation_invalid"),
        ({"op": "set_budget", "token_budget": 1}, "compile_failed"),
        ({"op": "remove_item", "item_id": "nothing"}, "item_unknown"),
        ({"op": "remove_memory"}, "item_unknown"),
        ({"op": "remove_source", "source": "nowhere"}, "item_unknown"),
        ({"op": "edit_message", "position": 99, "text": "x"}, "item_unknown"),
        ({"op": "edit_item", "item_id": "nothing", "content": "x"}, "item_unknown"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_made_refuses_and_says_which(
    mutation: Json, reason: str, stage: Stage
) -> None:
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)

    told = stage.refused(step_id, mutations=[mutation])

    assert told["reason"] == reason
    assert len(stage.provider.received) == asked
    assert stage.step(step_id)["replays"][0]["reason"] == reason


def test_changes_that_leave_nothing_to_send_refuse(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    ids = [one["item_id"] for one in stage.step(step_id)["receipts"]]

    told = stage.refused(step_id, mutations=[{"op": "remove_item", "item_id": one} for one in ids])

    assert told["reason"] == "context_empty"


def test_a_tool_call_and_its_result_stay_together(stage: Stage) -> None:
    step_id = tell(stage, "9" * 16, attributes=FOREIGN)

    told = stage.replay(step_id, mutations=[{"op": "remove_message", "position": 1}])
    body = json.dumps(stage.provider.received[-1].json)
    between = stage.refused(
        step_id,
        mutations=[{"op": "add_message", "role": "user", "text": "x", "position": 2}],
    )
    result = stage.refused(
        step_id, mutations=[{"op": "edit_message", "position": 2, "text": "lost"}]
    )
    tool = stage.refused(step_id, mutations=[{"op": "remove_tool", "name": "get"}])
    item_change = stage.refused(step_id, mutations=[{"op": "remove_item", "item_id": "x"}])

    assert "posted" not in body
    assert "removed with the results of its tool calls" in " ".join(told["notes"])
    assert between["reason"] == tool["reason"] == "broken_pairs"
    assert result["reason"] == "mutation_invalid"
    assert item_change["reason"] == "no_compilation"


def test_bodies_that_cannot_be_meant_are_400(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    for body in (
        {},
        {"step_id": step_id, "n": 0},
        {"step_id": step_id, "mode": "again"},
        {"step_id": step_id, "colour": "red"},
        {"step_id": step_id, "mutations": [{"op": "x"}] * 101},
    ):
        assert stage.post("/v1/replay", body).status_code == 400
    exact = stage.refused(step_id, mode="exact", mutations=[{"op": "set_model", "model": "m"}])
    assert exact["reason"] == "mutation_invalid"


# ---- sent, and it came to nothing


def test_a_provider_that_goes_down_in_the_middle_fails_with_what_there_is(stage: Stage) -> None:
    step_id = stage.compiled_call("openai_compatible")
    good = stage.step(step_id)["attributes"]["hansard.response.ref"]
    stage.provider.replies.append(json_reply(json.loads(stage.payload(good))))
    stage.provider.replies.append(json_reply({"error": {"message": "down"}}, status=503))

    told = stage.replay(step_id, n=3, max_retries=0)

    assert (told["state"], told["reason"]) == ("failed", "provider_failed")
    assert len(told["step_ids"]) == 1
    assert told["error"]["details"]["provider_status"] == 503
    steps = stage.get(f"/v1/runs/{told['run_id']}/steps")["items"]
    assert [one["status"] for one in steps if one["role"] == "llm"] == ["unset", "error"]


def test_a_model_that_was_retired_is_named(stage: Stage) -> None:
    step_id = stage.compiled_call("anthropic")
    error = {"type": "error", "error": {"type": "not_found_error", "message": "model: gone"}}
    stage.provider.replies.append(json_reply(error, status=404))

    told = stage.replay(step_id)

    assert (told["state"], told["reason"]) == ("failed", "model_unknown")
    assert "does not know the model" in told["reason_text"]


def test_the_recorded_version_of_an_api_is_spoken_again(stage: Stage) -> None:
    with stage.program():
        adapter = stage.adapter("anthropic")
        compiled = hansard.compile_step(
            inputs=ITEMS, model="claude-haiku-5-5", provider=adapter, token_budget=600
        )
        answer = hansard.call_model(compiled, provider=adapter)
        adapter.close()
    old = "2023-06-01"
    step = stage.step(answer.recorded.step_id)
    planted = tell_with_header(stage, step, old)

    stage.replay(planted)

    assert stage.provider.received[-1].headers["anthropic-version"] == old


def tell_with_header(stage: Stage, step: Json, version: str) -> str:
    """Tell the same call as one that spoke another version of the API."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-haiku-5-5",
        "gen_ai.input.messages": FOREIGN["gen_ai.input.messages"],
        "url.path": "/v1/messages",
        "hansard.request.ref": step["attributes"]["hansard.request.ref"],
        "http.request.header.anthropic-version": version,
    }
    return tell(stage, "a" * 16, attributes=attributes)


def test_a_process_that_ended_leaves_a_replay_that_says_so(own_stage: Stage) -> None:
    step_id = own_stage.compiled_call()
    of_step = {"source_run_id": step_id.partition("-")[0], "source_step_id": step_id}
    living = Holder(own_stage.folder)
    left = row(**of_step, holder="6f1e09ab6f1e09ab")
    beside = row(**of_step, replay_id="ab" * 16, holder=living.hold())
    for one in (left, beside):
        add_replay(own_stage.folder, one)

    own_stage.serve()

    told = own_stage.get(f"/v1/replay/{left.replay_id}")
    assert (told["state"], told["reason"]) == ("failed", "interrupted")
    assert own_stage.get(f"/v1/replay/{beside.replay_id}")["state"] == "running"
    living.release()


@pytest.mark.slow
def test_a_maker_that_is_killed_holds_nothing_whoever_has_its_number_next(
    own_stage: Stage,
) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from hansard_store.database.data_folder import DataFolder;"
        "from hansard_web.replay.engine import Holder;"
        "print(Holder(DataFolder(Path(sys.argv[1]))).hold(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(own_stage.folder.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as maker:  # fmt: skip
        assert maker.stdout is not None
        name = maker.stdout.readline().strip()
        while_it_lives = is_held(own_stage.folder, name)
        maker.kill()

    assert (while_it_lives, is_held(own_stage.folder, name)) == (True, False)
    assert not (own_stage.folder.replaying / name).exists()
    assert not is_held(own_stage.folder, "../blobs")


# ---- beside each other


def test_two_replays_of_one_step_at_once_are_two_runs(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    made: list[Json] = []
    threads = [
        threading.Thread(target=lambda: made.append(stage.replay(step_id))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {one["state"] for one in made} == {"done"}
    assert len({one["run_id"] for one in made}) == len({one["replay_id"] for one in made}) == 3


def test_pages_are_answered_while_a_provider_is_waited_for(stage: Stage) -> None:
    step_id = stage.compiled_call("openai_compatible")
    gate = threading.Event()
    good = json.loads(stage.payload(stage.step(step_id)["attributes"]["hansard.response.ref"]))
    reply = json_reply(good)
    stage.provider.replies.append(type(reply)([gate, *reply.pieces], media_type=reply.media_type))

    begun = stage.post("/v1/replay", {"step_id": step_id})
    running = stage.get(f"/v1/replay/{begun.json()['replay_id']}")
    gate.set()
    ended = stage.get(f"/v1/replay/{begun.json()['replay_id']}?wait=30")

    assert begun.status_code == 202
    assert running["state"] == "running"
    assert ended["state"] == "done"


@pytest.mark.covers("RP-04")
def test_a_replay_reads_no_event_log(own_stage: Stage) -> None:
    step_id = own_stage.compiled_call("openai")
    connection = open_for_maintenance(own_stage.folder)
    connection.execute("PRAGMA foreign_keys = OFF")
    with triggers_dropped(connection):
        connection.execute("DELETE FROM event")
    connection.close()

    told = own_stage.replay(step_id)
    changed = own_stage.replay(step_id, mutations=[{"op": "remove_item", "item_id": "almanac"}])

    assert (told["state"], changed["state"]) == ("done", "done")


def test_to_begin_one_takes_decide_and_to_preview_takes_read(own_stage: Stage) -> None:
    step_id = own_stage.compiled_call("openai")
    tokens = tuple(parse_token(one) for one in ("read:reader-token", "read+decide:decider-token"))
    own_stage.serve(WebSettings(tokens=tokens, model_server=own_stage.provider.address))
    body = {"step_id": step_id, "wait_s": 30}

    def ask(path: str, token: str) -> int:
        answer = own_stage.post(path, body, authorization=f"Bearer {token}")
        return answer.status_code

    assert ask("/v1/replay", "reader-token") == 403
    assert ask("/v1/replay/preview", "reader-token") == 200
    assert ask("/v1/replay", "decider-token") == 201


def test_a_server_that_stops_tells_of_what_it_left(own_stage: Stage) -> None:
    step_id = own_stage.compiled_call("openai_compatible")
    gate = threading.Event()
    reply = json_reply({"choices": []})
    own_stage.provider.replies.append(
        type(reply)([gate, *reply.pieces], media_type=reply.media_type)
    )
    begun = own_stage.post("/v1/replay", {"step_id": step_id}).json()

    own_stage.replays.close()
    readers = Readers(own_stage.folder)
    with readers.read() as connection:
        found = get_replay(connection, begun["replay_id"])
    readers.close()
    gate.set()
    own_stage.replays.wait(begun["replay_id"], seconds=30)

    assert (found.state, found.reason) == ("failed", "interrupted")
    assert not is_held(own_stage.folder, found.holder)


LOCAL: Final = {**FOREIGN, "server.address": "vllm.internal", "server.port": "8000"}


@pytest.mark.parametrize("path", ["", "/v1/chat/completions"])
def test_a_changed_call_that_went_to_a_server_of_its_own_says_where_it_is_sent(
    stage: Stage, path: str
) -> None:
    attributes = {**LOCAL, "url.path": path} if path else LOCAL
    planted = tell(stage, os.urandom(8).hex(), attributes=attributes)
    change = {"op": "set_sampling", "temperature": 0.5}

    shown = stage.preview(planted, change)
    page = stage.client.get(f"/replay/{planted}?act=mutated").text

    assert shown["address"].startswith(stage.provider.address)
    assert shown["recorded_address"].startswith("vllm.internal")
    [note] = [one for one in shown["notes"] if "vllm.internal" in one]
    assert note.startswith("the recorded call went to vllm.internal")
    assert "as is configured here" in note
    assert "vllm.internal" in page


def test_a_changed_call_goes_to_the_model_server_that_it_went_to(
    own_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = own_stage
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    host = urlsplit(stage.provider.address)
    attributes = {**FOREIGN, "server.address": str(host.hostname)}
    planted = tell(stage, os.urandom(8).hex(), attributes=attributes)

    shown = stage.preview(planted, {"op": "set_sampling", "temperature": 0.5})

    assert shown["address"] == f"{stage.provider.address}/v1/chat/completions"
    assert [one for one in shown["notes"] if "configured here" in one] == []


def test_a_preview_says_that_nobody_knows_where_the_recorded_call_went(stage: Stage) -> None:
    planted = tell(stage, os.urandom(8).hex(), attributes=FOREIGN)

    shown = stage.preview(planted, {"op": "set_sampling", "temperature": 0.5})

    assert shown["recorded_address"] is None


def test_an_exact_call_that_is_sent_elsewhere_says_so_before(
    own_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = own_stage
    stage.serve(WebSettings())
    step_id = stage.compiled_call("openai")
    recorded = stage.provider.address.removeprefix("http://")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stage.provider.address}/gateway/v1")

    shown = stage.preview(step_id, allow_other_address=True)

    assert shown["recorded_address"] == f"{recorded}/v1/responses"
    assert f"the recorded call went to {recorded}/v1/responses; this one is sent to " in str(
        shown["notes"]
    )

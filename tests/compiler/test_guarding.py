"""What may not be shown never leaves the compiler: by payload, receipt, error or compressor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.errors import CompileError, RequiredOverBudget, RequiredWithheld
from hansard_compiler.compile.ports import PolicyVerdict, Subject, TokenCounter
from tests.compiler.compiling import compiled, item, ports, reasons, request

CANARY = "AKIA" + "QXZ7PLMW2K4TBN3V"  # put together here, so that no scanner takes it for a key
_SECRETS = [
    CANARY,
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "sk-ant-" + "api03-" + "Zx9" * 31,
    "postgres://app:" + "correct-horse-battery" + "@db.internal/prod",
]


def _everything_said(result: CompileResult) -> str:
    """Return all that a result lets out, in every form it has."""
    payloads = b"\n".join(result.payloads().values()).decode()
    trails = [result.trail(one.item_id) for one in result.receipts]
    columns = json.dumps(result.columns(), ensure_ascii=False)
    context = result.context().model_dump_json()
    return "\n".join((payloads, json.dumps(trails), columns, context))


def _holding(secret: str) -> list[Any]:
    """Return items that hold a secret wherever an item can hold one."""
    call = {"type": "tool_call", "id": "c1", "name": "login", "arguments": {"password": secret}}
    answer = {"type": "tool_result", "id": "c1", "content": f"token={secret}"}
    return [
        item("text", content=f"The key is {secret} and nothing else."),
        item("json", "artifact", {"nested": [{"api_key": secret}]}),
        item("asked", "user_msg", f"use {secret} please"),
        item("call", "assistant_msg", {"role": "assistant", "parts": [call]}),
        item("answer", "tool_result", {"role": "tool", "parts": [answer]}),
        item("dropped", "summary", f"{secret} " + "long " * 4_000),
        item("where", source_ref={"source_type": "file", "uri": f"https://u:{secret}@host/x"}),
        item("titled", source_ref={"source_type": "file", "title": f"notes {secret}"}),
        item("output", "tool_result", "1 failed",
             source_ref={"source_type": "tool", "uri": f"https://u:{secret}@host/y"}),
        item("lost", "memory", f"The deploy key is {secret}.", trust_score=0.1),
        item("won", "memory", "The deploy key is rotated.", trust_score=0.9),
    ]  # fmt: skip


@pytest.mark.covers("CP-43", "CP-45", "CP-55", "TS-07")
@pytest.mark.parametrize("secret", _SECRETS, ids=["aws", "github", "anthropic", "url"])
def test_no_secret_is_in_anything_a_compile_lets_out(secret: str) -> None:
    result = compiled(_holding(secret), budget=900)

    assert secret not in _everything_said(result)
    assert "‹redacted:" in json.dumps(result.payload, ensure_ascii=False)


def test_a_redacted_item_stays_visible_with_what_was_cut() -> None:
    result = compiled([item("text", content=f"The key is {CANARY}, keep it.")])

    (receipt,) = result.receipts
    assert (receipt.decision, receipt.reason) == ("redact", "secrets_removed")
    assert receipt.pass_name == "policy"
    assert [one.partition(":")[0] for one in receipt.removed] == ["aws-access"]
    assert receipt.note == "1 cut: aws-access"
    assert result.payloads()[receipt.original_ref].startswith(b"The key is \xe2\x80\xb9redacted:")


class _Remembers:
    """A compressor that keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, text: str, *, query: str, target_tokens: int, counter: TokenCounter) -> str:
        self.given += [text, query]
        return "short"


@pytest.mark.covers("CP-43", "CP-55")
def test_a_compressor_never_sees_secrets_nor_what_is_withheld() -> None:
    compressor = _Remembers()
    items = [
        item("asked", "user_msg", f"what about {CANARY}?"),
        item("doc", content=f"{CANARY} " + "word " * 900),
        item("closed", content="closed matter " * 400, sensitivity="secret"),
        item("denied", content="denied matter " * 400),
    ]
    made = request(items, budget=300, task_summary=f"find out about {CANARY}")

    result = compile_context(made, ports(compressor=compressor, policy=_Says({"denied": "deny"})))

    assert reasons(result)["doc"] in ("secrets_removed", "compressed_to_fit")
    assert compressor.given
    given = "\n".join(compressor.given)
    assert CANARY not in given
    assert "closed matter" not in given
    assert "denied matter" not in given


class _LeakingCompressor:
    def __call__(self, text: str, *, query: str, target_tokens: int, counter: TokenCounter) -> str:
        return f"made up: {CANARY}"


def test_what_a_compressor_makes_up_is_redacted_as_well() -> None:
    made = request([item("doc", content="word " * 900)], budget=200)

    result = compile_context(made, ports(compressor=_LeakingCompressor()))

    assert result.receipts[0].decision == "compress"
    assert CANARY not in _everything_said(result)


class _Breaks:
    def __call__(self, payload: Any) -> dict[str, Any]:
        raise ValueError("cannot render " + json.dumps(payload))


@pytest.mark.covers("CP-55")
def test_not_even_an_error_while_rendering_shows_a_secret() -> None:
    made = request(_holding(CANARY), budget=900)

    with pytest.raises(ValueError, match="cannot render") as failed:
        compile_context(made, ports(renderer=_Breaks()))

    assert CANARY not in str(failed.value)


@pytest.mark.covers("CP-55")
@pytest.mark.parametrize(
    "broken",
    [
        item("x", "constraint", f"{CANARY} " + "word " * 4_000),
        item("x", content=CANARY, source_ref=None),
        item("x", content=CANARY, dependencies=["x"]),
        item("x", "tool_result", {"parts": [
            {"type": "tool_result", "id": "c7", "content": CANARY}]}),
        item("x", "system", CANARY, sensitivity="secret"),
        item("x", content=CANARY * 500_000),
    ],
    ids=["over budget", "no source", "ring", "orphan", "withheld", "too large"],
)  # fmt: skip
def test_refusals_do_not_show_content(broken: Any) -> None:
    with pytest.raises(CompileError) as refused:
        compiled([broken], budget=1_000)

    assert CANARY not in str(refused.value)
    assert CANARY not in repr(vars(refused.value))


def test_a_secret_spread_over_parts_takes_all_of_them_and_leaves_the_links() -> None:
    body = "MIIEowIBAAKCAQEA" + "q7Zr" * 40
    parts = [
        {"type": "text", "text": "-----BEGIN RSA PRIVATE KEY-----"},
        {"type": "text", "text": f"{body}\n-----END RSA PRIVATE KEY-----"},
        {"type": "tool_call", "id": "c1", "name": "read", "arguments": {}},
    ]
    answer = {"type": "tool_result", "id": "c1", "content": "x"}
    items = [
        item("call", "assistant_msg", {"role": "assistant", "parts": parts}),
        item("answer", "tool_result", {"role": "tool", "parts": [answer]}),
    ]

    result = compiled(items)

    assert body not in _everything_said(result)
    calls = [part for part in result.payload["messages"][0]["parts"] if "id" in part]
    assert [(part["type"], part["id"]) for part in calls] == [("tool_call", "c1")]


# --- clearance --------------------------------------------------------------------------------


@pytest.mark.covers("CP-13", "CP-46", "TS-07")
def test_a_less_trusted_agent_is_not_shown_what_is_above_its_clearance() -> None:
    items = [
        item("public", content="public words", sensitivity="public"),
        item("restricted", content="restricted words", sensitivity="restricted"),
        item("secret", content="secret words", sensitivity="secret"),
    ]

    main = compiled(items)
    helper = compiled(items, compile_config={"clearance": "internal", "agent": "helper"})

    assert reasons(main)["restricted"] == "within_budget"
    assert reasons(helper) == {
        "public": "within_budget",
        "restricted": "sensitivity_withheld",
        "secret": "sensitivity_withheld",
    }
    assert "restricted words" not in _everything_said(helper)
    assert "secret words" not in _everything_said(main)


# --- policy -----------------------------------------------------------------------------------


class _Says:
    """A policy that gives each item the verdict listed for it."""

    def __init__(self, effects: dict[str, Any]) -> None:
        self._effects = effects

    def decide(self, subject: Subject) -> PolicyVerdict:
        effect = self._effects.get(subject.item_id, "allow")
        if isinstance(effect, PolicyVerdict):
            return effect
        return PolicyVerdict(effect=effect, rule_ids=(f"rule-{effect}",))


class _Raises:
    def decide(self, subject: Subject) -> PolicyVerdict:
        raise KeyError(CANARY)


def _under(policy: Any, items: list[Any], **more: Any) -> CompileResult:
    return compile_context(request(items, **more), ports(policy=policy))


@pytest.mark.covers("CP-13")
def test_what_policy_denies_or_wants_approved_is_out_with_its_rules() -> None:
    policy = _Says({"a": "deny", "b": "require_approval", "c": "require_receipt"})

    result = _under(policy, [item("a"), item("b"), item("c"), item("d")])

    assert reasons(result) == {
        "a": "policy_denied", "b": "approval_required", "c": "within_budget", "d": "within_budget",
    }  # fmt: skip
    assert [one.pass_name for one in result.receipts] == ["policy", "policy", "budget", "budget"]
    assert [one.rule_ids for one in result.receipts][:3] == [
        ("rule-deny",), ("rule-require_approval",), ("rule-require_receipt",),
    ]  # fmt: skip


@pytest.mark.covers("CP-13")
def test_what_will_be_denied_takes_no_budget_from_others() -> None:
    items = [item("denied", content="word " * 30, tags=["pinned"]), item("b", content="more " * 30)]

    result = _under(_Says({"denied": "deny"}), items, budget=60)

    assert reasons(result) == {"denied": "policy_denied", "b": "within_budget"}
    assert result.trail("denied")[6]["reason"] == "foreseen"


def test_a_policy_that_fails_denies() -> None:
    result = _under(_Raises(), [item("a")])

    assert reasons(result) == {"a": "policy_failed"}
    assert CANARY not in _everything_said(result)


@pytest.mark.covers("CP-13")
@pytest.mark.parametrize("effect", ["deny", "require_approval"])
def test_what_is_never_dropped_and_may_not_be_shown_fails_the_compile(effect: str) -> None:
    with pytest.raises(RequiredWithheld) as refused:
        _under(_Says({"limit": effect}), [item("limit", "constraint", "never"), item("b")])

    ((item_id, reason, rules),) = refused.value.items
    assert (item_id, rules) == ("limit", (f"rule-{effect}",))
    assert reason == {"deny": "policy_denied", "require_approval": "approval_required"}[effect]


@pytest.mark.covers("CP-13")
def test_content_that_a_rule_redacts_whole_leaves_only_its_links() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "inner.txt"}}
    answer = {"type": "tool_result", "id": "c1", "content": "inner words"}
    items = [
        item("call", "assistant_msg", {"role": "assistant", "parts": [call]}),
        item("answer", "tool_result", {"role": "tool", "parts": [answer]}),
        item("note", content="inner words"),
    ]
    redact = PolicyVerdict(effect="redact", rule_ids=("r1",))

    result = _under(_Says({"call": redact, "answer": redact, "note": redact}), items)

    shown = json.dumps(result.payload)
    assert "inner" not in shown
    assert shown.count('"c1"') == 2
    assert set(reasons(result).values()) == {"policy_redacted"}
    assert {one.rule_ids for one in result.receipts} == {("r1",)}
    assert b"inner words" in result.payloads().values()  # the record keeps what was not sent


@pytest.mark.covers("CP-47")
def test_personal_data_is_cut_for_an_external_provider_and_kept_for_a_local_one() -> None:
    rule = {
        "id": "no-personal-data",
        "name": "No personal data leaves",
        "effect": "redact",
        "applies_to": {"provider": ["openai", "anthropic"]},
        "metadata": {"mask": {"patterns": ["[a-z.]+@[a-z.]+", "[+][0-9 ]{8,}"]}},
    }
    note = item("note", content="Write to ada@example.org or call +49 30 1234567 today.")

    external = compiled([note], provider="openai", policy_rules=[rule])
    local = compiled([note], provider="local", policy_rules=[rule])

    assert "ada@example.org" not in json.dumps(external.payload)
    assert "1234567" not in json.dumps(external.payload)
    assert "call" in json.dumps(external.payload)
    assert external.receipts[0].decision == "redact"
    assert external.receipts[0].rule_ids == ("no-personal-data",)
    assert "ada@example.org" in json.dumps(local.payload)
    assert [check.effect for check in local.state.ports.policy.checks] == ["allow"]


def test_named_kinds_of_personal_data_can_be_cut() -> None:
    verdict = PolicyVerdict(effect="redact", rule_ids=("r",), redact=("pii",))
    unknown = PolicyVerdict(effect="redact", rule_ids=("r",), redact=("no such rule",))
    items = [item("a", content="mail ada@example.org now"), item("b", content="mail bob@x.org now")]

    result = _under(_Says({"a": verdict, "b": unknown}), items)

    shown = json.dumps(result.payload, ensure_ascii=False)
    assert "ada@example.org" not in shown
    assert "mail ‹redacted:email:" in shown
    assert "bob" not in shown
    assert shown.count(" now") == 1


def test_a_group_leaves_with_the_one_of_it_that_is_denied() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "read", "arguments": {}}
    answer = {"type": "tool_result", "id": "c1", "content": "x"}
    items = [
        item("call", "assistant_msg", {"role": "assistant", "parts": [call]}),
        item("answer", "tool_result", {"role": "tool", "parts": [answer]}),
    ]

    assert reasons(_under(_Says({"answer": "deny"}), items)) == {
        "call": "group_withheld", "answer": "policy_denied",
    }  # fmt: skip


def test_numbers_of_a_refusal_count_what_would_be_shown() -> None:
    blob = item("x", "constraint", f"{CANARY} " + "word " * 400)

    with pytest.raises(RequiredOverBudget) as refused:
        compiled([blob], budget=100)

    assert 400 < refused.value.needed_tokens < 600

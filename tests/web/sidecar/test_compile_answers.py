"""Compiles over the sidecar as a program without the SDK sees them: records, scorers, marks."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler import relevance
from hansard_compiler.compile.errors import ScorerUnavailable
from tests.web.sidecar.conftest import Agent, Json


def _item(item_id: str, content: str, kind: str = "retrieval_doc", **more: Any) -> Json:
    source = {"source_type": "retrieval", "uri": f"kb:{item_id}"}
    return {"id": item_id, "kind": kind, "content": content, "source_ref": source, **more}


def _compiled(agent: Agent, items: list[Json], question: str, **more: Any) -> Json:
    asked = _item("asked", question, "user_msg")
    body = {
        "run_id": agent.start(), "provider": "local", "model": "m", "token_budget": 20_000,
        "context_items": [*items, asked], **more,
    }  # fmt: skip
    return agent.tell("/v1/compile", body)


def _minutes(number: int) -> str:
    points = (f"Point {at} was {'agreed' if at % number else 'put off'}." for at in range(1, 90))
    return f"Meeting minutes number {number} of the platform team. " + " ".join(points)


@pytest.mark.covers("CP-60")
def test_minutes_and_records_that_open_alike_all_go_in(agent: Agent) -> None:
    minutes = [_item(f"m{number}", _minutes(number)) for number in range(1, 9)]
    orders = [
        _item(f"o{number}", f"Order {number} was refunded to the customer by card.", "memory")
        for number in range(101, 106)
    ]

    answer = _compiled(agent, [*minutes, *orders], "What did the platform team decide?")

    decisions = answer["compiled"]["decisions"]
    assert len(decisions) == 14
    assert {one["decision"] for one in decisions} == {"include"}


def test_what_may_contradict_is_told_in_receipts_and_on_the_page(agent: Agent) -> None:
    items = [
        _item("friday", "The deadline is Friday.", "memory"),
        _item("monday", "The deadline is Monday.", "memory"),
        _item("alone", "Needs another item.", "memory", dependencies=["ghost"]),
    ]

    answer = _compiled(agent, items, "When is the deadline?")

    notes = {one["item_id"]: one["notes"] for one in answer["compiled"]["decisions"]}
    assert notes["friday"] == "possible_conflict: may differ in value from monday; both are kept"
    assert notes["alone"] == "depends on what is no candidate: ghost"
    page = agent.client.get(f"/steps/{answer['step_id']}/context").text
    assert "2 items may contradict another one; both are kept: friday, monday" in page
    assert "rated by pieces/1" in page
    item = agent.client.get(f"/steps/{answer['step_id']}/context?item=friday").text
    assert "may differ in value from monday; both are kept" in item


@pytest.mark.covers("CP-59")
def test_a_scorer_is_chosen_by_name_and_told_in_every_receipt(agent: Agent) -> None:
    items = [
        _item("refunds", "Refunds are paid to the card within ten days."),
        _item("cats", "Cats sleep all day and chase mice at night."),
    ]

    answer = _compiled(agent, items, "When do I get my money back?", relevance="embeddings")

    compiled = answer["compiled"]
    rated = {one["item_id"]: one["score_breakdown"]["relevance"] for one in compiled["decisions"]}
    assert compiled["scorer"] == rated["refunds"]["scorer"] == "wordllama/1"
    assert rated["refunds"]["value"] > 2 * rated["cats"]["value"]
    again = agent.get(f"/v1/compilations/{answer['compilation_id']}")
    assert again["hash"] == compiled["compile_hash"]


def test_an_unknown_scorer_is_a_400_that_lists_those_there_are(agent: Agent) -> None:
    body = {
        "run_id": agent.start(), "provider": "local", "model": "m", "token_budget": 900,
        "relevance": "tfidf",
    }  # fmt: skip

    answer = agent.post("/v1/compile", body)

    assert answer.status_code == 400
    assert "bm25, pieces, embeddings" in answer.json()["error"]["message"]


def test_a_missing_extra_is_a_501_that_names_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relevance, "_PACKAGE", "a_package_that_is_not_installed")
    relevance._model.cache_clear()
    body = {
        "run_id": agent.start(), "provider": "local", "model": "m", "token_budget": 900,
        "context_items": [_item("a", "A text.")], "relevance": "embeddings",
    }  # fmt: skip

    compile_answer = agent.post("/v1/compile", body)
    read = {"namespace": {"project": "p"}, "text": "money", "scorer": "embeddings"}
    read_answer = agent.post("/v1/memory/read", read)

    relevance._model.cache_clear()
    for answer in (compile_answer, read_answer):
        assert answer.status_code == 501, answer.text
        error = answer.json()["error"]
        assert error["code"] == ScorerUnavailable.code
        assert error["details"] == {"scorer": "wordllama/1", "extra": "embeddings"}
        assert "pip install 'hansard[embeddings]'" in error["message"]

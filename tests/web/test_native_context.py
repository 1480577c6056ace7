"""The native Context tab: every figure on it is one that a real compile told."""

from __future__ import annotations

import re
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_compiler.calls import Json
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.passes.score import NANO
from hansard_store.memory.service import MemoryService
from tests.web.compiles import KEY, RULES, RUN, Put, candidate, compiled, file, ref_of, tell
from tests.web.html import Element, parse
from tests.web.makers import RunMaker

COMPILE, CALL = f"{RUN}-{2:016x}", f"{RUN}-{3:016x}"


@pytest.fixture
def put(client: TestClient) -> Put:
    def store(data: bytes, media_type: str) -> None:
        headers = {"content-type": media_type}
        answer = client.put(f"/v1/payloads/{ref_of(data)}", content=data, headers=headers)
        assert answer.is_success, answer.text

    return store


@pytest.fixture
def quillbook(pipeline: Pipeline, put: Put) -> CompileResult:
    """A run with one compile of every kind of decision."""
    result = compiled(rules=RULES, budget=2_600)
    tell(pipeline, put, result, cached=400)
    return result


def read(client: TestClient, query: str = "", step: str = CALL) -> Element:
    answer = client.get(f"/steps/{step}/context{query}")
    assert answer.status_code == 200, answer.text
    return parse(answer.text).one("main")


def rows(page: Element) -> dict[str, Element]:
    """Return item id -> row."""
    found = page.all("tr", class_="receipt")
    return {row.one("a", class_="rowlink").text: row for row in found}


@pytest.mark.covers("UI-03", "UI-12", "AC-09")
@pytest.mark.parametrize("step", [COMPILE, CALL])
def test_every_candidate_stands_there_with_decision_and_reason(
    client: TestClient, quillbook: CompileResult, step: str
) -> None:
    page = read(client, step=step)

    shown = rows(page)
    assert len(shown) == len(quillbook.receipts) == 21
    for receipt in quillbook.receipts:
        row = shown[receipt.item_id]
        assert row["data-decision"] == receipt.decision
        assert row.one("code").text == receipt.reason.value
        assert row.all("td")[-1].text.endswith(receipt.pass_name)
        if receipt.decision == "exclude" and receipt.missed_by_tokens is not None:
            assert f"missed by {receipt.missed_by_tokens:,} token" in row.text
    assert page.one("h1").text == "Context"
    assert "A payload is missing" not in page.text
    assert "native" in page.text
    assert "21 candidates: 11 included, 1 compressed, 1 redacted, 8 excluded" in page.text
    assert "They fill 1,671 of 2,000 tokens." in page.text


@pytest.mark.covers("UI-04")
def test_the_terms_on_the_page_add_up_to_the_last_digit(
    client: TestClient, quillbook: CompileResult
) -> None:
    page = read(client)

    scored = {one.item_id: one.score for one in quillbook.receipts if one.score is not None}
    sums = page.all("tr", class_="breakdown")
    assert len(sums) == len(scored)
    for one in sums:
        item_id = one.one("caption").text or one.one("caption").children[0]
        name = str(item_id).removeprefix("Score of ").removesuffix(", term by term")
        points = [
            Decimal(row.all("td")[2].text.replace("−", "-")) for row in one.one("tbody").all("tr")
        ]
        total = Decimal(one.one("tfoot").all("td")[2].text.replace("−", "-"))
        assert sum(points) == total == Decimal(scored[name].total) / NANO
        for row in one.one("tbody").all("tr"):
            value, weight, made = (
                cell.text.strip("× ").replace("−", "-") for cell in row.all("td")[:3]
            )
            assert Decimal(value) * Decimal(weight) == Decimal(made)


@pytest.mark.covers("CP-62")
def test_the_bar_is_the_budget(client: TestClient, quillbook: CompileResult) -> None:
    page = read(client)

    told = quillbook.token_allocation
    keys = {
        one.one("dt").text: one.one("b").text for one in page.one(class_="budget-key").all("div")
    }
    assert keys["stable prefix"] == f"{told['by_section']['stable_prefix']:,}"
    assert keys["free"] == f"{told['free']:,}"
    assert keys["kept for the answer"] == f"{told['reserve']:,}"
    bar = page.one("svg", class_="budget-bar")
    widths = dict.fromkeys(("seg-stable", "seg-task", "seg-volatile", "seg-free"), 0.0)
    for rect in bar.all("rect"):
        if rect.classes[0] in widths:
            widths[rect.classes[0]] += float(rect["width"].rstrip("%"))
    assert widths["seg-free"] == pytest.approx(told["free"] / told["budget"] * 100, abs=0.01)
    assert widths["seg-stable"] == pytest.approx(445 / 2_600 * 100, abs=1)
    assert "1,688 billed, the estimate is 1.0% under" in page.text


def test_a_compressed_item_shows_what_was_cut(client: TestClient, quillbook: CompileResult) -> None:
    item = read(client, "?item=decimal-rounding").one("aside", id="item")

    assert "668 → 251 tokens" in item.text
    assert "Contexts are per thread" in " ".join(one.text for one in item.all("del"))
    assert any("characters left out" in one.text for one in item.all("ins"))
    original = read(client, "?item=decimal-rounding&text=original").one("aside", id="item")
    assert original.all("del") == []
    assert original.one(class_="excerpt").text.startswith("Rounding. A context carries")
    sent = read(client, "?item=decimal-rounding&text=sent").one("aside", id="item")
    assert "characters left out" in sent.one(class_="excerpt").text
    stored = [one["href"] for one in item.all("a") if one["href"].startswith("/v1/payloads/")]
    assert [client.get(href).status_code for href in stored] == [200, 200]


def test_an_item_tells_where_it_came_from_and_what_each_pass_said(
    client: TestClient, quillbook: CompileResult
) -> None:
    item = read(client, "?item=decimal-rounding").one("aside", id="item")

    facts = dict(zip((one.text for one in item.all("dt")), item.all("dd"), strict=True))
    address = facts["address"].one("a")
    assert address["href"].startswith("https://docs.python.org/")
    assert address["rel"] == "noopener noreferrer"
    assert facts["query"].text == "decimal round half up quantize cents"
    assert facts["made by step"].one("a")["href"] == f"/steps/{RUN}-{4:016x}"
    assert facts["made by step"].text == "execute_tool search_docs"
    trail = [one.text for one in item.one(class_="trail").all("li")]
    assert len(trail) == 12
    assert trail[7] == "8compresscompressed: Too long for its rank, shortened"
    assert trail[11] == "12recordhas its receipt"
    out = read(client, "?item=payroll").one("aside", id="item").one(class_="trail").all("li")
    assert [one.attributes.get("data-state", "") for one in out] == ["", "out", *["todo"] * 10]


def test_an_address_that_is_not_the_web_is_text(
    client: TestClient, quillbook: CompileResult
) -> None:
    item = read(client, "?item=binary-floats").one("aside", id="item")

    assert "file:///srv/docs/fp.md" in item.text
    assert all(not one["href"].startswith("file:") for one in item.all("a"))


def test_a_secret_is_nowhere_on_the_page(client: TestClient, quillbook: CompileResult) -> None:
    for query in ("?item=.env.test", "?item=.env.test&text=original", "?show=request"):
        answer = client.get(f"/steps/{CALL}/context{query}")
        assert KEY not in answer.text
    item = read(client, "?item=.env.test").one("aside", id="item")
    assert "‹redacted:openai:" in item.text


@pytest.mark.covers("CP-44")
def test_a_redacted_item_stays_visible_with_its_rule_and_the_places(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    card = {
        "id": "no-cards",
        "name": "No card numbers",
        "applies_to": {"action": "see"},
        "effect": "redact",
        "conditions": {"item.id": {"equals": "payment"}},
        "metadata": {"mask": {"patterns": ["[0-9]{4} [0-9]{4}"]}},
    }
    items = [
        candidate("payment", "file", "card 4111 1111 declined", file("payment.txt")),
        candidate("env", "file", f"KEY={KEY} is set", file(".env")),
        candidate("ask", "user_msg", "Why was it declined?", "user"),
    ]
    tell(pipeline, put, compiled(items, budget=2_000, rules=[card], min_score=None))

    masked = read(client, "?item=payment").one("aside", id="item")
    sent = read(client, "?item=payment&text=sent").one("aside", id="item")
    cut = read(client, "?item=env").one("aside", id="item")

    row = rows(read(client))["payment"]
    assert (row["data-decision"], row.one("code").text) == ("redact", "policy_redacted")
    assert row.one("a", class_="tag").text == "no-cards"
    assert (masked.one("del").text, masked.one("ins").text) == ("4111 1111", "‹masked:no-cards›")
    assert sent.one(class_="excerpt").text == "card ‹masked:no-cards› declined"
    row = rows(read(client))["env"]
    assert (row["data-decision"], row.one("code").text) == ("redact", "secrets_removed")
    assert re.search(r"Cut out: openai:\w+", cut.text)
    assert re.search(r"KEY=‹redacted:openai:\w+› is set", cut.text)


def test_the_address_filters_orders_and_groups(
    client: TestClient, quillbook: CompileResult
) -> None:
    assert list(rows(read(client, "?decision=exclude&pass=validate"))) == ["python-3.10", "payroll"]
    assert list(rows(read(client, "?q=MONEY&decision=include"))) == [
        "money-is-decimal", "quillbook/money.py",
    ]  # fmt: skip
    scored = rows(read(client, "?order=score&group=none"))
    totals = [float(row.all("td")[2].text) for row in scored.values() if row.all("details")]
    assert totals == sorted(totals, reverse=True)
    assert read(client, "?order=score&group=none").all("tr", class_="group") == []
    turned = list(rows(read(client, "?order=-tokens&group=none")))
    assert turned[-1] == "quillbook/money.py"
    by_decision = [
        one.all("b")[0].text for one in read(client, "?group=decision").all("tr", class_="group")
    ]
    assert by_decision == ["Included", "Compressed", "Redacted", "Excluded"]
    nothing = read(client, "?q=nowhere")
    assert "No item meets this" in nothing.text
    assert [one.text for one in nothing.one(class_="why-shown").all("a")] == ["with “nowhere”"]
    misspelt = read(client, "?decision=excluded").one(class_="why-shown")
    assert misspelt.one("a").text == "decision “excluded”"


def test_what_makes_no_sense_in_an_address_is_left_out(
    client: TestClient, quillbook: CompileResult
) -> None:
    page = read(client, "?order=<x>&group=9&first=99999999&item=%00nobody&text=7&decision=")

    assert len(rows(page)) == 21
    assert page.all("aside") == []


def test_steps_lead_to_each_other(client: TestClient, quillbook: CompileResult) -> None:
    of_call, of_compile = read(client, step=CALL), read(client, step=COMPILE)

    assert f"/steps/{COMPILE}/context" in [one["href"] for one in of_call.all("a", class_="link")]
    assert f"/steps/{CALL}/context" in [one["href"] for one in of_compile.all("a", class_="link")]
    tabs = of_call.one(class_="why-tabs").all("a")
    assert [one["href"] for one in tabs if one.text.startswith("Context")] == [
        f"/steps/{CALL}/context"
    ]
    pane = client.get(f"/runs/{RUN}?span={3:016x}&tab=context")
    assert "Open with scores, texts and origins" in pane.text


def test_what_policy_said_stands_below(client: TestClient, quillbook: CompileResult) -> None:
    checks = read(client).one("section", aria_labelledby="rules-h")

    total = len(quillbook.state.ports.policy.checks)
    assert f"{total} checks: {total - 1} allowed, 1 denied." in checks.text
    [denied] = checks.all("li")
    assert denied["data-effect"] == "deny"
    assert denied.text.startswith("denied deploy-keys by restricted-sources")
    assert "/receipts?rule=restricted-sources" in [one["href"] for one in denied.all("a")]


def test_an_item_whose_id_is_a_hash_is_known_by_its_words(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    made = f"user_msg:{7:016x}"
    said = {"role": "user", "parts": [{"type": "text", "text": "Where is order 7?"}]}
    tell(pipeline, put, compiled([candidate(made, "user_msg", said, "user")], budget=2_000))

    [row] = read(client).all("tr", class_="receipt")
    assert row.one("a", class_="rowlink").text == "“Where is order 7?”"
    assert made in row.one(class_="it-src").text
    assert read(client, f"?item={made}").one("h2", id="insp-h").text == made


def test_a_memory_is_known_by_its_words_and_leads_to_its_record(
    client: TestClient, pipeline: Pipeline, put: Put, runs: RunMaker
) -> None:
    with closing(MemoryService(runs.folder)) as book:
        told: Json = {"writer": "app", "memory_type": "constraint", "subject": "rounding",
                      "namespace": {"project": "shop"}, "content": "Round once."}  # fmt: skip
        kept = book.write_json(told)["memory"]["memory_id"]
    gone = "ab" * 16
    tell(pipeline, put, compiled(
        [candidate(one, "memory", "Round once.", "memory", metadata={"memory_id": one})
         for one in (kept, gone)], budget=2_000))  # fmt: skip

    assert "“Round once.”" in rows(read(client))
    links = {one.text: one["href"] for one in read(client, f"?item={kept}").all("a")}
    assert links["rounding"] == f"/memory/{kept}"
    assert "not here" in read(client, f"?item={gone}").one("aside").text


@pytest.mark.covers("IN-13")
def test_a_memory_from_outside_names_its_address_and_that_nobody_trusts_it(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    record = {"id": "story", "memory_type": "note", "subject": "search", "content": "A story."}
    outside = {"origin": "external", "url": "https://example.com/a"}
    told = [{**record, "confidence": 0, "metadata": outside}]
    tell(pipeline, put, compiled([], budget=2_000, memories=told))

    item = read(client, "?item=story").one("aside", id="item")

    facts = dict(zip((one.text for one in item.all("dt")), item.all("dd"), strict=True))
    assert facts["source"].text == "external api"
    assert facts["address"].one("a")["href"] == "https://example.com/a"
    assert float(facts["confidence"].text) == 0


def test_two_turns_are_compared(client: TestClient, pipeline: Pipeline, put: Put) -> None:
    second = compiled(step=12, budget=2_900, rules=RULES)
    tell(pipeline, put, compiled(budget=2_600, rules=RULES), second)
    page = read(client, "?item=decimal-rounding", step=f"{RUN}-{13:016x}")

    assert "same bytes as last turn" in page.text
    history = [one.text for one in page.one(class_="history").all("li")]
    assert [text[8:] for text in history] == ["compressed668 → 251", "included668 tokens"]
    links = {one.text: one["href"] for one in page.one(class_="page-head").all("a")}
    assert links["Previous call"] == f"/steps/{COMPILE}/context"
    assert "Next call" in read(client).one(class_="page-head").text


def test_the_request_is_looked_at_when_asked_for(
    client: TestClient, quillbook: CompileResult
) -> None:
    folded = read(client).one(id="request")
    assert folded.all(class_="jt-top") == []
    shown = read(client, "?show=request").one(id="request")

    assert len(shown.all(class_="jt-top")) == 2
    bytes_of = [one["href"] for one in shown.all("a", class_="btn") if "download" in one.attributes]
    sent = client.get(bytes_of[0])
    assert sent.json()["model"] == "gpt-4o-mini"
    assert client.get(bytes_of[1]).json()["rendered_payload"] == quillbook.payload
    parts = read(client).one(class_="parts").one("tbody").all("tr")
    for name, row in zip(("stable_prefix", "task_context", "volatile_suffix"), parts, strict=True):
        assert row.one("span", class_="mono")["title"] == quillbook.section(name).hash


def test_without_payloads_the_receipts_stand_and_the_rest_is_said_to_be_missing(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    tell(pipeline, put, compiled(rules=RULES), keep_payloads=False)
    page = read(client, "?item=plan-3")

    assert len(rows(page)) == 21
    assert page.all("tr", class_="breakdown") == []
    assert "The result of this compile is not here" in page.text
    item = page.one("aside", id="item")
    assert "Its text is not here" in item.text
    assert "The request of this compile is not here" in item.text
    assert read(client, "?show=request").text.count("not stored") == 1


@pytest.mark.covers("UI-22")
def test_what_is_hostile_in_a_compile_is_text(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    bad = "<script>window.owned=1</script>\"'><img src=x onerror=owned()>{{7*7}}"
    items: list[Any] = [
        candidate(bad, "file", bad, file(f"javascript:alert(1)//{bad}", title=bad, version=bad,
                                         author=bad, metadata={"step_id": bad, "run_id": bad}),
                  tags=[bad]),
        candidate("copy", "file", bad, file("https://user:pw@example.org/"), trust_score=0.1),
        candidate("ask", "user_msg", "go", "user"),
    ]  # fmt: skip
    tell(pipeline, put, compiled(items, budget=2_000))

    for query in (f"?item={bad.replace('#', '%23')}", "?show=request", "?item=copy", f"?q={bad}"):
        page = read(client, query)
        assert page.all("script") == page.all("img") == []
        assert all(re.match(r"/|#|https://user@?$|\?", one["href"]) for one in page.all("a")), query
    found = client.get("/receipts", params={"item": bad})
    assert parse(found.text).one("main").all("script") == []
    assert bad in parse(found.text).one("main").one("a", class_="rowlink").text


def test_a_compile_of_thousands_is_turned_in_pages(
    client: TestClient, pipeline: Pipeline, put: Put
) -> None:
    items = [candidate(f"part-{at:04}", "file", f"words of {at}", file(f"docs/{at}.md"))
             for at in range(4_200)]  # fmt: skip
    result = compiled(items, budget=9_000)
    kept: list[str] = []

    def put_two(data: bytes, media_type: str) -> None:
        if len(kept) < 2:  # request and result; the texts of thousands say nothing here
            kept.append(media_type)
            put(data, media_type)

    tell(pipeline, put_two, result)
    page = read(client)
    assert len(rows(page)) == 40
    assert "1 to 40 of 4,200" in page.one(class_="why-pages").text
    [next_page] = page.one(class_="why-pages").all("a")
    assert next_page["href"] == f"/steps/{CALL}/context?first=40"
    last = read(client, "?first=4160")
    assert len(rows(last)) == 40
    assert "4,161 to 4,200 of 4,200" in last.text
    chosen = list(rows(last))[30]
    assert chosen in rows(read(client, f"?item={chosen}"))
    assert len(page.one("svg", class_="budget-bar").all("rect")) < 900


def test_a_step_without_a_compile_keeps_its_derived_context_or_none(
    client: TestClient, quillbook: CompileResult
) -> None:
    tool = client.get(f"/steps/{RUN}-{4:016x}/context")
    assert (tool.status_code, tool.headers["location"]) == (303, f"/steps/{RUN}-{4:016x}")
    fragment = client.get(f"/fragments/steps/{CALL}/context?q=money")
    assert fragment.headers["location"] == f"/steps/{CALL}/context?q=money"
    assert client.get(f"/steps/{'9' * 32}-{1:016x}/context").status_code == 404

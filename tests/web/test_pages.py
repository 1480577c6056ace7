"""The other pages: search, conversations, usage, health, the greeting, themes, errors."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.testclient import TestClient

from hansard._clients.instrumentor_packages import NODE, PYTHON, Setup
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.ingest.derived_rows import Usage
from hansard_web.app.config import WebSettings
from tests.journeys.processes import environment
from tests.web.conftest import MakeClient
from tests.web.html import Element, parse
from tests.web.makers import RunMaker


def read(client: TestClient, path: str, status: int = 200) -> Element:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return parse(answer.text)


# ---- search


def test_hits_stand_together_by_run_with_the_words_marked(
    client: TestClient, runs: RunMaker
) -> None:
    run_id = runs.run("fix", words="Round half up, please", answer="Rounding goes half up now")
    runs.run("other", words="nothing of the kind")

    page = read(client, "/search?q=half+up")

    assert page.one("main").one("h2").text == "fix, clerk"
    assert "2 hits in 1 run" in page.one("span", role="status").text
    hits = page.all("li", class_="hit")
    assert [hit.one("p", class_="hit-text").text for hit in hits] == [
        "Rounding goes half up now",
        "Round half up, please",
    ]
    assert [mark.text for mark in hits[0].all("mark")] == ["half", "up"]
    assert all(hit.one("a")["href"].startswith(f"/runs/{run_id}?span=") for hit in hits)


@pytest.mark.covers("UI-22")
def test_what_is_found_is_escaped_around_the_marks(client: TestClient, runs: RunMaker) -> None:
    runs.run(words="<b>half</b> <script>up</script>")

    hit = read(client, "/search?q=half").one("p", class_="hit-text")

    assert hit.text == "<b>half</b> <script>up</script>"
    assert [child.tag for child in hit.walk()] == ["mark"]


def test_the_id_of_a_run_leads_to_it(client: TestClient, runs: RunMaker) -> None:
    run_id = runs.run("fix", trace="0123456789abcdef0123456789abcdef")

    page = read(client, "/search?q=01234567")

    assert page.one("main").one(class_="note").one("a")["href"] == f"/runs/{run_id}"


@pytest.mark.parametrize("q", ['"', "-x", "* *", "a" * 3000, "%00", "<script>", "' OR 1=1 --"])
def test_any_search_has_an_answer(client: TestClient, runs: RunMaker, q: str) -> None:
    runs.run()

    assert client.get("/search", params={"q": q}).status_code == 200


def test_older_hits_are_on_the_next_page(client: TestClient, runs: RunMaker) -> None:
    for number in range(51):
        runs.run(words=f"marmalade number {number}")

    first = read(client, "/search?q=marmalade")
    second = read(client, first.one("a", class_="more")["href"])

    assert len(first.all("li", class_="hit")) == 50
    assert [hit.text for hit in second.all("p", class_="hit-text")] == ["marmalade number 0"]


# ---- conversations


def test_a_conversation_is_its_runs_in_order(client: TestClient, runs: RunMaker) -> None:
    runs.run("later", words="And tomorrow?", age_s=50, conversation="c 1&2")
    runs.run("earlier", words="Rain today?", age_s=500, conversation="c 1&2", status=2)
    runs.run("alone")

    row = read(client, "/conversations").one("tbody").one("tr")
    page = read(client, row.one("a")["href"])

    assert row.one("a").text == "Rain today?"
    assert [turn.one("h2").text for turn in page.all("section", class_="turn")] == [
        "earlier",
        "later",
    ]
    figures = {one.one("dt").text: one.one("dd").text for one in page.one("dl", class_="figures")
               .all("div")}  # fmt: skip
    assert figures["runs"] == "2"
    assert figures["errors"] == "1"
    assert page.one("main").all("a", class_="btn")[-1]["href"] == "/?conversation=c+1%262"


def test_an_unknown_conversation_is_not_found(client: TestClient) -> None:
    page = read(client, "/conversations?id=nobody", status=404)

    assert "nobody" in page.one("main").text


# ---- times

EXTREMES = ["0001-01-01", "1969-12-31", "2262-04-12", "2400-01-01", "9999-12-31T23:59:59-14:00",
            "0001-01-01T00:00:00+14:00", "9" * 40, "-1", "1e400", "NaN", "99999999999999999999d",
            "2026-02-30", "\0", "٣"]  # fmt: skip
TIMED = ["/", "/usage", "/events", "/receipts", "/search", "/conversations", "/approvals",
         "/memory",
         "/tasks", "/health", "/v1/runs", "/v1/events", "/v1/usage", "/v1/receipts", "/v1/search",
         "/v1/memory", "/v1/approvals", "/v1/tasks", "/v1/annotations"]  # fmt: skip


@pytest.mark.parametrize("path", TIMED)
def test_no_time_in_an_address_is_an_error_of_the_server(
    client: TestClient, runs: RunMaker, path: str
) -> None:
    runs.run(model="gpt-5")
    names = ["since", "until", "from", "to", "days", "before", "after", "now"]

    answers = {
        (name, text): client.get(path, params={"q": "x", name: text}).status_code
        for name in names
        for text in EXTREMES
    }

    assert {key: status for key, status in answers.items() if status >= 500} == {}


# ---- usage


def test_usage_adds_up_over_every_grouping(client: TestClient, runs: RunMaker) -> None:
    runs.run(model="gpt-5", agent="a", usage=Usage(1000, 100, 500, None, None, 2_000_000_000))
    runs.run(model="gpt-5", agent="b", usage=Usage(1000, 100, 500, None, None, 1_000_000_000))
    runs.run(model="haiku", agent="b", usage=Usage(2000, 200, None, None, None, None))

    page = read(client, "/usage")

    heads = page.one("dl", class_="heads").all("div")
    total = {one.one("dt").text: " ".join(dd.text for dd in one.all("dd")) for one in heads}
    assert total["Cost"] == "$3.00 without 1 call whose cost is not known"
    assert total["Input tokens"] == "4.0k"
    assert total["Cached input"] == "1.0k 25% of input"
    assert total["Reasoning"] == "–"
    models = page.one("section", aria_labelledby="u-model").one("tbody").all("tr")
    assert [row.one("th").text for row in models] == ["gpt-5", "haiku"]
    assert models[0].all("td")[-1].text == "$3.00"
    assert models[1].all("td")[-1].text.startswith("–")
    assert models[0].one("a")["href"] == "/?since=30d&model=gpt-5"
    agents = page.one("section", aria_labelledby="u-agent").one("tbody").all("tr")
    assert {row.one("th").text: row.all("td")[-1].text for row in agents} == {
        "a": "$2.00", "b": "$1.00",
    }  # fmt: skip


@pytest.mark.parametrize("show", ["cost", "tokens", "kinds", "calls", "<b>", ""])
def test_usage_has_one_chart_of_the_chosen_measure_with_its_peak(
    client: TestClient, runs: RunMaker, show: str
) -> None:
    runs.run(model="gpt-5", usage=Usage(1000, 100, 500, None, None, 2_000_000_000))
    peaks = {"tokens": "1.1k tokens", "kinds": "1.1k tokens", "calls": "1 model call"}

    page = read(client, f"/usage?show={show}")

    assert len(page.all("svg", class_="chart-svg")) == 1
    assert len(page.one("nav", aria_label="Measure").all("a", aria_current="true")) == 1
    assert f"Peak: {peaks.get(show, '$2.00')}, " in page.one("main").text


def test_usage_merges_dated_versions_of_a_model_until_they_are_counted_apart(
    client: TestClient, runs: RunMaker
) -> None:
    for model in ("gpt-5", "gpt-5-2025-08-07"):
        runs.run(model=model, usage=Usage(1000, 100, 500, None, None, 2_000_000_000))

    def models(path: str) -> list[str]:
        table = read(client, path).one("section", aria_labelledby="u-model").one("tbody")
        return sorted(row.one("th").text for row in table.all("tr"))

    assert models("/usage") == ["gpt-5"]
    assert models("/usage?dated=1") == ["gpt-5", "gpt-5-2025-08-07"]


def test_usage_of_a_time_without_calls_says_so(client: TestClient, runs: RunMaker) -> None:
    runs.run(age_s=40 * 86_400)

    page = read(client, "/usage?since=7d")

    assert page.one("div", class_="empty").one("h2").text == "No model call in this period"
    everything = read(client, page.one("div", class_="empty").one("a")["href"])
    assert everything.one("section", aria_labelledby="u-model")


# ---- health


@pytest.mark.covers("CO-16")
def test_health_shows_sums_that_add_up_and_what_senders_were_told(
    make_client: MakeClient, pipeline: Pipeline
) -> None:
    client = make_client(ingest=pipeline)
    spans = ExportTraceServiceRequest()
    span = spans.resource_spans.add().scope_spans.add().spans.add(name="ok")
    span.trace_id, span.span_id, span.start_time_unix_nano = b"t" * 16, b"s" * 8, 1
    spans.resource_spans[0].scope_spans[0].spans.add(name="no id")
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": "<b>exporter</b>/1"}
    client.post("/v1/traces", content=b"\xff\xff", headers=headers)
    client.post("/v1/traces", content=spans.SerializeToString(), headers=headers)

    page = read(client, "/health").one("main")

    sums = page.one("div", class_="sum")
    assert [figure.text for figure in sums.all("b")] == ["2", "1", "0", "1"]
    assert sums.one(class_="flag").text == "all accounted for"
    refusals = page.one("table", class_="refusals").one("tbody").all("tr")
    assert any("a whole request" in row.text for row in refusals)
    assert any("1 item of traces" in row.text for row in refusals)
    assert "<b>exporter</b>/1" in refusals[0].text
    facts = page.one("dl", class_="gauges-facts").text
    assert "redacted_payloads" in facts
    assert "write queue" in page.one("dl", class_="gauges").text


def test_health_refreshes_by_itself(client: TestClient, runs: RunMaker) -> None:
    body = read(client, "/health?period=1h").one(id="health")

    assert body["hx-trigger"] == "every 5s"
    fragment = client.get(body["hx-get"], headers={"HX-Request": "true"})
    assert "Nothing was received in the last 1 hour" in parse(fragment.text).text


# ---- the greeting


def test_an_empty_store_greets_with_the_addresses_of_its_doors(make_client: MakeClient) -> None:
    settings = WebSettings(http_address="127.0.0.1:5318", grpc_address="127.0.0.1:5317")

    page = read(make_client(settings), "/")

    assert page.one("h1").text == "No traces yet"
    endpoints = page.one("p", class_="greet-doors").text
    assert "127.0.0.1:5317" in endpoints
    snippets = [snippet.text for snippet in page.all("pre")]
    assert any("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:5318" in one for one in snippets)
    assert any("CLAUDE_CODE_ENABLE_TELEMETRY" in one for one in snippets)
    assert page.one("noscript").one("meta")["http-equiv"] == "refresh"


@pytest.mark.slow
def test_the_greeting_has_the_lines_of_the_sdk_and_they_run(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:  # takes what is sent, answers nothing
        port = nobody.getsockname()[1]
        page = read(make_client(WebSettings(http_address=f"127.0.0.1:{port}")), "/")
        [snippet] = [one.text for one in page.all("pre") if "hansard.instrument()" in one.text]
        ended = subprocess.run(
            [sys.executable, "-c", snippet.replace(" hansard.", "\nhansard.")],
            capture_output=True,
            text=True,
            timeout=240,
            env=environment(HANSARD_EXIT_TIMEOUT_MS="100"),
        )

    assert f'hansard.init(endpoint="http://127.0.0.1:{port}")' in snippet
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("setup", [PYTHON, NODE], ids=lambda setup: setup.language)
def test_the_greeting_has_the_lines_that_work_with_the_official_clients(
    make_client: MakeClient, setup: Setup
) -> None:
    page = read(make_client(WebSettings()), "/")

    snippets = [snippet.text for snippet in page.all("pre")]
    assert any(" ".join(setup.lines) == " ".join(one.split()) for one in snippets)
    if setup.file:
        shown = f"cat > {setup.file} <<'END'\n{setup.text}END"
        assert any(" ".join(shown.split()) == " ".join(one.split()) for one in snippets)


def test_the_greeting_ends_with_the_first_run(client: TestClient, runs: RunMaker) -> None:
    runs.run()

    assert read(client, "/").one("h1").text == "Runs"


# ---- theme and errors


def test_the_server_writes_the_chosen_theme_into_the_page(
    client: TestClient, runs: RunMaker
) -> None:
    form = read(client, "/usage?since=7d").one("form", id="theme")
    fields = {field["name"]: field["value"] for field in form.all("input")}

    answer = client.post("/theme", data={**fields, "theme": "dark"})

    assert answer.headers["location"] == "/usage?since=7d"
    html = read(client, "/usage").one("html")
    assert html["data-theme"] == "dark"
    chosen = read(client, "/usage").one("form", id="theme").one("button", aria_pressed="true")
    assert chosen.text == "Dark"


def test_a_theme_that_does_not_exist_is_refused(client: TestClient) -> None:
    form = read(client, "/usage").one("form", id="theme")
    csrf = form.one("input", name="csrf")["value"]

    assert client.post("/theme", data={"csrf": csrf, "theme": "x"}).status_code == 400
    client.cookies.set("hansard_theme", '"><script>')
    assert "data-theme" not in read(client, "/usage").one("html").attributes


def test_what_does_not_exist_is_told_in_a_page(client: TestClient) -> None:
    page = read(client, "/nothing/here", status=404)

    assert page.one("h1").text == "Not Found"
    assert page.one("main").one("a")["href"] == "/"

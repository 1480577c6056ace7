"""Notes, scores and tags on the pages: shown, added and withdrawn by plain forms."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_store.annotations.service import AnnotationService
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.store.maker import span_id
from tests.web.conftest import MakeClient
from tests.web.forms import form_token
from tests.web.html import parse
from tests.web.makers import RunMaker

HOSTILE = "<script>alert(1)</script>"


def page(client: TestClient, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text[-2000:]
    return answer.text


def send(client: TestClient, run: str, **fields: Any) -> Any:
    """Send a form of the run's page, without a script."""
    csrf = form_token(page(client, f"/runs/{run}"))
    back = f"/runs/{run}?view=log"
    return client.post("/annotations", data={"csrf": csrf, "run_id": run, "back": back, **fields})


def tag_of(client: TestClient, run: str) -> dict[str, Any]:
    """Return the only tag of a run, as the API tells it."""
    (found,) = client.get("/v1/annotations", params={"run": run, "kind": "tag"}).json()["items"]
    told: dict[str, Any] = found
    return told


def test_a_run_without_annotations_offers_forms(client: TestClient, runs: RunMaker) -> None:
    text = page(client, f"/runs/{runs.run()}")

    assert "none yet" in text
    for form in ("Add a tag", "Add a score", "Add a note"):
        assert f'aria-label="{form} to this run"' in text


def test_forms_work_without_a_script_and_come_back_to_where_they_were(
    client: TestClient, runs: RunMaker
) -> None:
    run = runs.run()

    tagged = send(client, run, kind="tag", tag="Needs Review")
    scored = send(
        client, run, kind="score", name="correctness", value="0,9", label="pass", text="why not"
    )
    noted = send(client, run, kind="note", text="odd\nbut fine", expected="It is one.", by="noor")

    for answer in (tagged, scored, noted):
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/runs/{run}?view=log#annotations-run-added"
    text = page(client, f"/runs/{run}")
    head = parse(text).one("div", id="run-facts").text
    for words in ("needs-review", "correctness 0.9 pass"):
        assert words in " ".join(head.split())
    for words in ("why not", "odd\nbut fine", "It is one.", "noor", "1 score, 1 note"):
        assert words in text
    assert "needs-review" in page(client, "/")
    assert "0.9 pass" in page(client, "/")


def test_a_form_for_a_step_puts_it_there_and_the_run_tells_of_it(
    client: TestClient, runs: RunMaker
) -> None:
    run = runs.run(name="answer")
    step = f"{run}-{span_id('chat gpt-4o-mini').hex()}"
    shown = page(client, f"/steps/{step}")

    done = client.post(
        "/annotations",
        data={"csrf": form_token(shown), "step_id": step, "kind": "note", "text": "of the step"},
    )

    assert done.headers["location"] == f"/steps/{step}#annotations-step-added"
    assert "of the step" in page(client, f"/steps/{step}")
    of_run = page(client, f"/runs/{run}")
    assert "On its steps" in of_run
    assert f'href="/steps/{step}"' in of_run
    pane = page(client, f"/fragments/runs/{run}/step?span={step[33:]}", **{"HX-Request": "true"})
    assert "of the step" in pane


def test_htmx_gets_the_panel_alone_and_a_refusal_keeps_what_was_typed(
    client: TestClient, runs: RunMaker
) -> None:
    run = runs.run()
    fields = {
        "csrf": form_token(page(client, f"/runs/{run}")), "run_id": run, "kind": "score",
        "name": "correctness", "value": "very good", "text": "long words",
    }  # fmt: skip

    refused = client.post("/annotations", data=fields, headers={"HX-Request": "true"})
    plain = client.post("/annotations", data=fields)
    done = client.post("/annotations", data=fields | {"value": "1"}, headers={"HX-Request": "true"})

    assert (refused.status_code, plain.status_code, done.status_code) == (400, 400, 200)
    assert "<html" in plain.text
    for answer in (refused, plain):
        assert "is no number" in answer.text
        assert "long words" in answer.text
    for answer in (refused, done):
        assert answer.text.lstrip().startswith("<details")
    assert 'role="alert"' not in done.text


def test_a_tag_is_removed_and_the_history_says_by_whom(client: TestClient, runs: RunMaker) -> None:
    run = runs.run()
    send(client, run, kind="tag", tag="golden")
    told = tag_of(client, run)
    csrf = form_token(page(client, f"/runs/{run}"))
    path = f"/annotations/{told['annotation_id']}/withdraw"

    done = client.post(path, data={"csrf": csrf, "by": "iris"})
    again = client.post(path, data={"csrf": csrf}, headers={"HX-Request": "true"})

    assert done.headers["location"] == f"/runs/{run}#annotations-run-added"
    assert again.status_code == 409
    assert "was withdrawn already" in again.text
    text = page(client, f"/runs/{run}")
    assert "withdrawn by iris" in text
    assert "golden" not in parse(text).one("div", id="run-facts").text


@pytest.mark.covers("UI-22")
def test_what_is_written_is_escaped(client: TestClient, runs: RunMaker) -> None:
    run = runs.run()
    send(client, run, kind="note", text=HOSTILE, expected=HOSTILE, by=HOSTILE)
    send(client, run, kind="score", name="a", label=HOSTILE[:64], text=HOSTILE)

    for path in (f"/runs/{run}", "/"):
        assert HOSTILE not in page(client, path)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page(client, f"/runs/{run}")


def test_a_way_back_leads_nowhere_else(client: TestClient, runs: RunMaker) -> None:
    run = runs.run()
    answer = send(client, run, kind="tag", tag="x", back="https://evil.example/")

    assert answer.headers["location"] == "/#annotations-run-added"


def test_forms_need_their_token_and_a_thing_that_is_there(
    client: TestClient, runs: RunMaker
) -> None:
    run = runs.run()
    csrf = form_token(page(client, f"/runs/{run}"))

    assert client.post("/annotations", data={"run_id": run}).status_code == 403
    missing = {"csrf": csrf, "run_id": "0" * 32, "kind": "tag", "tag": "x"}
    assert client.post("/annotations", data=missing).status_code == 404
    nothing = {"csrf": csrf, "run_id": run}
    assert client.post("/annotations", data=nothing).status_code == 400


def test_whoever_may_only_read_sees_no_forms(make_client: MakeClient, runs: RunMaker) -> None:
    run = runs.run()
    book = AnnotationService(runs.folder)
    book.write_json({"run_id": run, "kind": "tag", "tag": "golden"})
    book.close()
    token = AccessToken("reader-secret-token", frozenset({Scope.READ}))
    client = make_client(WebSettings(tokens=(token,)))
    bearer = {"Authorization": "Bearer reader-secret-token"}

    text = page(client, f"/runs/{run}", **bearer)

    assert "golden" in text
    assert "may read, and not annotate" in text
    assert "Add a tag" not in text
    assert "/withdraw" not in text


def test_a_store_without_content_offers_no_notes(make_client: MakeClient, runs: RunMaker) -> None:
    client = make_client(WebSettings(retention="metadata_only"))
    run = runs.run()

    text = page(client, f"/runs/{run}")
    refused = send(client, run, kind="note", text="x")

    assert "no notes" in text
    assert "Add a note" not in text
    assert refused.status_code == 409
    assert send(client, run, kind="score", name="a", label="pass").status_code == 303


def test_the_list_is_narrowed_by_tags_and_scores_in_its_address(
    client: TestClient, runs: RunMaker
) -> None:
    first, second = runs.runs(["one", "two"])
    send(client, first, kind="tag", tag="golden")
    send(client, second, kind="score", name="correctness", value="0.2")

    def shown(address: str) -> list[str]:
        return re.findall(r'<tr id="run-(\w+)"', page(client, address))

    assert shown("/?tag=golden") == [first]
    assert shown("/?score=correctness%3C0.5") == [second]
    assert shown("/?q=score:correctness%3C0.5") == [second]
    assert shown("/?q=tag:golden+score:correctness") == []
    chips = parse(page(client, "/?q=tag:golden")).one("div", class_="filter-box").text
    assert "tag golden" in " ".join(chips.split())
    assert "write name, name:label" in page(client, "/?score=%3E1").lower()
    assert 'href="/?tag=golden"' in page(client, "/")

"""The memory page: what it shows, where it leads, and what its forms do without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_collector.heartbeat.cycle import Heartbeat
from hansard_collector.judges import Judges
from hansard_collector.judges.offline import OfflineClassifier
from hansard_collector.maintenance import Maintainer
from hansard_compiler.calls import Json
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.memory.service import MemoryService
from tests.web.forms import form_token
from tests.web.html import parse
from tests.web.makers import RunMaker

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def book(runs: RunMaker) -> Iterator[MemoryService]:
    made = MemoryService(runs.folder)
    yield made
    made.close()


def write(book: MemoryService, content: Any = "Money is Decimal inside.", **more: Any) -> str:
    told: Json = {
        "writer": "app", "memory_type": "constraint", "subject": "money", "attribute": "type",
        "namespace": {"project": "quillbook"}, "content": content, **more,
    }  # fmt: skip
    memory_id: str = book.write_json(told)["memory"]["memory_id"]
    return memory_id


def page(client: TestClient, path: str = "/memory", status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text[-2000:]
    return answer.text


def test_an_empty_store_says_how_memory_is_written(client: TestClient) -> None:
    text = page(client)

    assert "No memory yet" in text
    assert "hansard.memory.write" in text


def test_notes_of_the_heartbeat_are_listed_when_they_are_asked_for(
    client: TestClient, runs: RunMaker, book: MemoryService
) -> None:
    write(book)
    assert "Show them" not in page(client)
    Heartbeat(runs.folder, Judges()).run()

    plain, shown = page(client), page(client, "/memory?agent=hansard.heartbeat")

    [link] = [one for one in parse(plain).all("a") if one.text == "Show them"]
    assert link["href"] == "/memory?agent=hansard.heartbeat"
    assert "money" in plain
    assert "heartbeat maintenance" not in plain
    assert "heartbeat maintenance" in shown
    assert "money" not in parse(shown).one("tbody").text
    assert "heartbeat maintenance" in page(client, "/memory?type=note")  # as the facet counts them


@pytest.mark.covers("UI-15", "ME-20")
def test_the_explorer_shows_both_layers_sources_confidence_and_freshness(
    client: TestClient, runs: RunMaker, book: MemoryService
) -> None:
    run = runs.run("answer")
    step = f"{run}-{'12' * 8}"
    memory_id = write(book, run_id=run, step_id=step, confidence=0.95, by="mender")
    write(
        book, "a plan", memory_type="working", subject=None, namespace={}, slot="plan", run_id=run
    )
    book.read_json({"namespace": {"project": "quillbook"}, "run_id": run, "step_id": step})

    text = page(client)
    record = page(client, f"/memory/{memory_id}")

    for words in ("money", "current plan", "project quillbook", f"run {run[:8]}", "0.95"):
        assert words in text
    assert "money" not in page(client, "/memory?layer=working").split("<tbody>")[1]
    for href in (f"/runs/{run}", f"/steps/{step}"):
        assert f'href="{href}"' in record
    assert "Read 1 time" in record
    assert "No compile had it" in record


@pytest.mark.covers("ME-18", "UI-15")
def test_a_record_is_withdrawn_with_a_reason_and_the_second_time_says_so(
    client: TestClient, book: MemoryService
) -> None:
    memory_id = write(book)
    csrf = form_token(page(client, f"/memory/{memory_id}?project=quillbook"))
    form = {"csrf": csrf, "reason": "it moved", "by": "noor"}
    address = f"/memory/{memory_id}/invalidate?project=quillbook"

    empty = client.post(address, data={"csrf": csrf, "reason": " "})
    forged = client.post(address, data={"reason": "x"})
    done = client.post(address, data=form)
    again = client.post(address, data=form)

    assert (empty.status_code, forged.status_code) == (400, 403)
    assert "Say why" in empty.text
    assert done.status_code == 303
    assert done.headers["location"] == f"/memory/{memory_id}?project=quillbook"
    assert again.status_code == 409
    assert "is invalidated" in again.text
    text = page(client, f"/memory/{memory_id}")
    assert "ana: it moved" in text  # the person who is signed in, not the name in the form
    assert "<tbody>" not in page(client, "/memory")
    assert "withdrawn by ana" in page(client, "/memory?state=all")


def test_what_waits_for_a_person_is_accepted_by_a_form(
    client: TestClient, book: MemoryService
) -> None:
    old = write(book, "sure", confidence=0.9)
    new = write(book, "unsure", confidence=0.1)
    text = page(client, f"/memory/{new}")

    answer = client.post(f"/memory/{new}/accept", data={"csrf": form_token(text), "by": "noor"})

    assert f"/memory/{old}" in text
    assert "Let it stand" in text
    assert answer.status_code == 303
    assert "Let it stand" not in page(client, f"/memory/{new}")
    assert "Version 2" in page(client, f"/memory/{new}")


def test_versions_show_what_changed(client: TestClient, book: MemoryService) -> None:
    write(book, "CI runs Python three")
    memory_id = write(book, "CI runs Python four")

    text = page(client, f"/memory/{memory_id}")

    assert "CI runs Python <del>three</del><ins>four</ins>" in text
    assert page(client, f"/memory/{memory_id[-10:]}", 303) == ""


def test_filters_are_typed_or_clicked_and_a_bad_one_is_told(
    client: TestClient, book: MemoryService
) -> None:
    write(book, tags=["ci"])
    write(book, "short titles", memory_type="preference", subject="commits")

    typed = page(client, "/memory?q=kind:preference+titles")
    assert "commits" in typed
    assert "Remove filter type" not in typed
    assert "Remove filter kind" in typed
    assert "No record matches" in page(client, "/memory?q=kind:fact")
    assert "is a number of 0 to 1" in page(client, "/memory?min_confidence=x")
    assert "open; close it" in page(client, '/memory?q="')
    assert page(client, f"/memory/{'00' * 16}", 404)


def test_hostile_memory_is_only_text(client: TestClient, book: MemoryService) -> None:
    memory_id = write(
        book, HOSTILE, subject=HOSTILE, tags=[HOSTILE], by=HOSTILE,
        namespace={"project": HOSTILE},
    )  # fmt: skip
    write(book, {"a": HOSTILE}, subject=HOSTILE, by=HOSTILE, namespace={"project": HOSTILE})

    assert HOSTILE not in page(client, "/memory?state=all")
    assert HOSTILE not in page(client, f"/memory/{memory_id}")
    assert HOSTILE not in page(client, "/memory", 200)


@pytest.mark.parametrize(
    ("url", "href"),
    [("https://example.com/a", "https://example.com/a"), ("javascript:alert(1)", None)],
)
def test_what_came_from_outside_says_from_where(
    client: TestClient, book: MemoryService, url: str, href: str | None
) -> None:
    memory_id = write(book, confidence=0, metadata={"origin": "external", "url": url})

    record = parse(page(client, f"/memory/{memory_id}")).one(id="record")

    facts = dict(zip((one.text for one in record.all("dt")), record.all("dd"), strict=True))
    assert url in facts["from outside"].text
    assert [one["href"] for one in facts["from outside"].all("a")] == ([href] if href else [])


def test_more_than_a_page_is_read_on(client: TestClient, book: MemoryService) -> None:
    for number in range(52):
        write(book, subject=f"s{number:02}")

    first = page(client)
    more = re.search(r'class="more" href="([^"]+)"', first)

    assert more
    rest = page(client, more[1].replace("&amp;", "&"))
    assert rest.count('class="rowlink"') == 2
    assert "First page" in rest
    by_read = page(client, "/memory?sort=read")
    assert 'aria-sort="descending"' in by_read


@pytest.mark.covers("UI-06")
def test_a_run_and_its_steps_say_what_memory_was_used_and_written(
    client: TestClient, runs: RunMaker, book: MemoryService
) -> None:
    run = runs.run("answer")
    (step_id,) = [
        one["step_id"]
        for one in client.get(f"/v1/runs/{run}/steps").json()["items"]
        if one["name"] == "answer"
    ]
    memory_id = write(book, run_id=run, step_id=step_id)
    book.read_json({"namespace": {"project": "quillbook"}, "run_id": run, "step_id": step_id})
    book.read_json({"namespace": {"project": "nobody"}, "run_id": run})

    whole, step = page(client, f"/runs/{run}"), page(client, f"/steps/{step_id}")

    assert "1 read, 1 written or changed, 1 read that found nothing" in whole
    assert "1 read, 1 written or changed" in step
    for text in (whole, step):
        assert f'href="/memory/{memory_id}"' in text
        assert f'href="/steps/{step_id}"' in text
    other = runs.run("other")
    assert "/memory/" not in page(client, f"/runs/{other}")
    assert memory_id in page(client, f"/memory?run={run}&state=all")


@pytest.mark.covers("MM-12", "MM-05")
def test_what_superseded_a_record_is_shown_with_its_rationale_and_undone(
    client: TestClient, runs: RunMaker, book: MemoryService
) -> None:
    told: Json = {"memory_type": "fact", "subject": "staging", "attribute": ""}
    older = write(book, "The port of the staging server is 8080.", **told)
    newer = write(book, "The port of the staging server is 9090.", **told)
    with closing(MaintenanceService(runs.folder)) as maintained:
        Maintainer(maintained, Judges(OfflineClassifier(), None)).run()

    shown = page(client, f"/memory/{older}")
    action = f"/memory/{older}/unsupersede"
    form = {"csrf": form_token(shown), "newer": newer, "by": "noor"}
    answer = client.post(action, data=form, follow_redirects=False)
    again = client.post(action, data=form)

    for words in ("Superseded by", "Another number of the same", "offline/1, score 0.9", "Undo"):
        assert words.casefold() in shown.casefold()
    assert f'action="{action}"' in shown
    assert answer.status_code == 303
    text = page(client, f"/memory/{older}")
    assert "Taken back by" in text
    assert f'action="{action}"' not in text
    assert again.status_code == 409
    assert "is current, not superseded" in again.text
    assert f"/memory/{older}" in page(client, "/memory")

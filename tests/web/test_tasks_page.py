"""Reviews: what repeats, where it leads, and what its forms do without a script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from hansard_collector.judges import Judges
from hansard_collector.maintenance import Maintainer
from hansard_compiler.classifier import CONTRADICTS, ClassifierQuestion, ClassifierVerdict
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.memory.service import MemoryService
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.signing import session_of
from tests.store.task_maker import TaskMaker
from tests.web.conftest import MakeClient
from tests.web.forms import form_token
from tests.web.html import parse
from tests.web.makers import RunMaker

HOSTILE = "<script>alert(1)</script>"


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A classifier that is never sure."""

    name: str = "doubtful/1"

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        return ClassifierVerdict(CONTRADICTS, 0.6, "both may hold")


@pytest.fixture
def failing(runs: RunMaker) -> Iterator[TaskMaker]:
    maker = TaskMaker(runs.store, now_ns=time.time_ns())
    yield maker
    maker.close()


def page(client: TestClient, path: str = "/tasks", status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text[-2000:]
    return answer.text


def test_an_empty_page_says_which_command_fills_it(client: TestClient) -> None:
    text = page(client)

    assert "No recurring issues" in text
    assert "hansard detect" in text
    assert 'aria-current="page">Reviews<' in text


@pytest.mark.covers("DI-12")
def test_what_repeats_is_shown_with_its_rule_and_leads_to_the_steps(
    client: TestClient, failing: TaskMaker
) -> None:
    failing.fail_often(23, "no such file: '/tmp/x.json'")
    task = failing.detect_one()

    text = page(client)

    for words in (
        "waits for review", "The tool run_tests keeps failing in the same way", "23 times",
        "5 times or more within 24 hours", "no such file: &#39;/tmp/x.json&#39;",
        "3 others between the first one and these", "somebody has to look for the cause",
    ):  # fmt: skip
        assert words in text
    for one in (task.evidence[0], task.evidence[-1]):
        assert f'href="/steps/{one.id}"' in text
        page(client, f"/steps/{one.id}")
    where = parse(text).one("table", class_="task-places").one("tbody")
    assert all(one.text.startswith("step ") for one in where.all("a"))  # its name, not its id
    assert page(client, f"/tasks/{task.task_id[:10]}")


@pytest.mark.covers("DI-13")
def test_a_task_is_approved_with_a_note_and_then_closed_by_plain_forms(
    client: TestClient, failing: TaskMaker
) -> None:
    failing.fail_often(5)
    address = f"/tasks/{failing.detect_one().task_id}"
    csrf = form_token(page(client, address))
    form = {"csrf": csrf, "decision": "approve", "note": "mend the fixture"}

    forged = client.post(address, data={"decision": "approve"})
    early = client.post(address, data={"csrf": csrf, "decision": "done"})
    done = client.post(f"{address}?state=all", data=form)
    again = client.post(address, data=form)
    other = client.post(
        address, data={"csrf": csrf, "decision": "dismiss", "note": "mine", "by": "kim"}
    )

    assert (forged.status_code, early.status_code, other.status_code) == (403, 409, 409)
    assert "blocked until a person approves it" in early.text
    assert (done.status_code, done.headers["location"]) == (303, f"{address}?state=all")
    assert again.status_code == 303
    assert "was approved already by ana" in other.text
    text = page(client, address)
    assert "mend the fixture" in text
    assert "Approved by ana" in text
    client.post(address, data={"csrf": csrf, "decision": "done"})
    assert failing.tasks()[0].state == "done"
    assert "Nothing waits for a review" in page(client)
    assert "run_tests" in page(client, "/tasks?state=all")


def test_a_decision_that_is_none_is_told_and_its_note_kept(
    client: TestClient, failing: TaskMaker
) -> None:
    failing.fail_often(5)
    address = f"/tasks/{failing.detect_one().task_id}"
    csrf = form_token(page(client, address))

    answer = client.post(address, data={"csrf": csrf, "decision": "x", "note": "what I wrote"})

    assert answer.status_code == 400
    assert "Nothing was changed" in answer.text
    assert 'value="what I wrote"' in answer.text


def test_recorded_words_are_only_text(client: TestClient, failing: TaskMaker) -> None:
    failing.fail_often(5, HOSTILE, tool=HOSTILE)
    failing.decide(failing.detect_one(), "dismiss", note=HOSTILE, by=HOSTILE)

    assert HOSTILE not in page(client, "/tasks?state=all")
    assert "&lt;script&gt;" in page(client, "/tasks?state=all")


def test_older_tasks_are_on_the_next_page_and_a_bad_cursor_is_told(
    client: TestClient, failing: TaskMaker
) -> None:
    for number in range(52):
        failing.fail_often(5, tool=f"tool {number}")
    failing.detect()

    first = parse(page(client))
    (older,) = [one["href"] for one in first.all("a") if one.text == "Older ones"]

    assert len(first.all("a", class_="inbox-item")) == 50
    assert len(parse(page(client, older)).all("a", class_="inbox-item")) == 2
    assert "is not a cursor of this list" in page(client, "/tasks?cursor=x")
    assert page(client, f"/tasks/{'00' * 16}", 404)


def test_whoever_may_only_read_sees_why_they_cannot_decide(
    make_client: MakeClient, failing: TaskMaker
) -> None:
    failing.fail_often(5)
    failing.detect()
    token = AccessToken("a-token-to-read", frozenset({Scope.READ}))
    client = make_client(WebSettings(tokens=(token,)))
    client.headers["Authorization"] = "Bearer a-token-to-read"

    text = page(client)

    assert "Your token may read, and not decide" in text
    assert '<fieldset class="ask-fields" disabled' in text


def test_where_no_words_are_kept_no_note_is_asked_for(
    make_client: MakeClient, failing: TaskMaker
) -> None:
    failing.fail_often(5)
    failing.detect()

    client = make_client(WebSettings(retention="metadata_only"))
    client.cookies.update(session_of(failing.store.folder))

    text = page(client)

    assert 'name="note"' not in text
    assert 'value="approve"' in text


@pytest.mark.covers("MM-11")
def test_a_doubtful_supersession_shows_both_records_and_approving_applies_it(
    client: TestClient, runs: RunMaker
) -> None:
    told = {"writer": "app", "memory_type": "fact", "subject": "Ada",
            "namespace": {"project": "quillbook"}}  # fmt: skip
    with closing(MemoryService(runs.folder)) as book:
        for text in ("Ada is allergic to peanuts.", f"Ada is allergic to {HOSTILE}."):
            book.write_json({**told, "content": text})
        with closing(MaintenanceService(runs.folder)) as maintained:
            judges = Judges(Doubtful(), None)
            (act,) = Maintainer(maintained, judges).run().proposed

        text = page(client)
        action = f"/tasks/{act.task_id}"
        data = {"csrf": form_token(text), "decision": "approve"}
        answer = client.post(action, data=data, follow_redirects=False)

        for words in (
            "The older record", "The newer record", "Ada is allergic to peanuts.",
            "Approve: the newer supersedes the older", "doubtful/1, score 0.60",
        ):  # fmt: skip
            assert words in text
        assert HOSTILE not in text
        assert answer.status_code == 303
        (left,) = book.read_json({"namespace": {"project": "quillbook"}})["items"]
    assert left["memory_id"] == act.newer.memory_id

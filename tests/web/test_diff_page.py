"""The page of two runs or two steps, and the file it is saved as."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hansard_web.diff.cli import diff
from tests.web.comparisons import (
    AGNO_RUN,
    FRAMEWORK_RUN,
    HOSTILE,
    LEFT,
    RIGHT,
    TALK,
    World,
    step,
)
from tests.web.html import Element, parse
from tests.web.traces import Trace, said


def read(world: World, path: str) -> Element:
    answer = world.http.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text).one("main")


@pytest.mark.covers("UI-05", "UI-13")
def test_two_runs_show_what_differs_and_why(world: World) -> None:
    page = read(world, f"/diff/{LEFT}/{RIGHT}")

    rows = {row.attributes["data-item"]: row for row in items(page)}
    assert set(rows) == {"decimal-rounding", "notes", "earlier-fix"}
    assert "compressed" in rows["decimal-rounding"].text
    assert "budget, tokens 2,600 → 3,400 verified" in rows["decimal-rounding"].text
    assert "not a candidate" in rows["earlier-fix"].text
    assert "decimal-rounding was compressed, now " in page.text  # before what is merely new
    settings = [cells(row) for row in page.all("table", class_="ins")[0].one("tbody").all("tr")]
    assert ["weight of freshness", "0.25", "0.15"] in settings
    assert ["rule restricted-sources", "version 6", "version 7"] in settings
    sections = [cells(row) for row in page.all("table", class_="secs")[0].all("tr")]
    assert [row[0] for row in sections] == ["stable prefix", "task context", "volatile suffix"]
    assert "another score" in page.one("details", class_="scores-fold").text


def items(page: Element) -> list[Element]:
    return [row for row in page.all("tr") if "data-item" in row.attributes]


def cells(row: Element) -> list[str]:
    return [one.text for one in row.walk() if one.tag in ("th", "td")]


@pytest.mark.covers("UI-05")
def test_steps_stand_side_by_side_with_their_state(world: World) -> None:
    page = read(world, f"/diff/{LEFT}/{RIGHT}")
    tree = page.one(class_="dt")
    states = {
        one.one("a", class_="tg-title").text: one.attributes["data-state"]
        for one in tree.all(role="row")
        if "data-state" in one.attributes
    }
    assert states["search_code"] == "right"
    assert states["gpt-4o-mini"] == "changed"
    assert states["list_files"] == "same"


def test_what_is_the_same_is_shown_when_it_is_asked_for(world: World) -> None:
    few = items(read(world, f"/diff/{LEFT}/{RIGHT}"))
    everything = items(read(world, f"/diff/{LEFT}/{RIGHT}?show=all"))
    assert len(everything) == len(few) + 3


def test_a_row_opens_its_own_detail(world: World) -> None:
    page = read(world, f"/diff/{LEFT}/{RIGHT}")
    link = next(
        one for one in page.all("a", class_="tg-title") if "apply_patch" in one.text
    ).attributes["href"]
    opened = read(world, link.partition("#")[0])
    assert "The step you chose: apply_patch" in opened.text
    assert "$.path" in opened.text


def test_recorded_text_is_escaped(world: World) -> None:
    text = world.http.get(f"/diff/{LEFT}/{RIGHT}?show=all").text
    assert "&lt;script&gt;alert(1)" in text
    assert HOSTILE not in text


def test_the_sides_can_be_swapped_and_ids_may_be_short(world: World) -> None:
    answer = world.http.get(f"/diff/{LEFT[:8]}/{RIGHT[:8]}?show=all")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/diff/{LEFT}/{RIGHT}?show=all"
    page = read(world, f"/diff/{LEFT}/{RIGHT}")
    swap = next(one for one in page.all("a", class_="btn") if one.text == "Swap sides")
    assert swap.attributes["href"] == f"/diff/{RIGHT}/{LEFT}"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/diff/{LEFT}/{step(RIGHT, 3)}", 400),
        ("/diff/00000000/00000001", 404),
        (f"/diff/{LEFT}/{RIGHT}?row=999999&from=9999999999999&layout=x", 200),
    ],
)
def test_an_odd_address_gets_a_page_that_says_what_to_do(
    world: World, path: str, status: int
) -> None:
    assert world.http.get(path).status_code == status


def test_a_run_against_itself_says_that_nothing_differs(world: World) -> None:
    page = read(world, f"/diff/{LEFT}/{LEFT}")
    assert "Nothing differs." in page.text
    assert "6 steps the same" in page.text


def test_two_libraries_that_told_one_conversation_are_compared(world: World) -> None:
    page = read(world, f"/diff/{AGNO_RUN}/{FRAMEWORK_RUN}")
    assert "Two runs of one task" in page.text
    assert "3 steps the same" in page.text  # both calls and the tool, under their own names
    assert "unknown in A" in page.text  # reasoning tokens, which one of them does not tell


def test_the_heads_of_two_calls_say_where_they_stand(world: World) -> None:
    run = world.new_run()
    trace = Trace(run)
    trace.agent(1, duration_s=9, name="planner")
    for number, turn in ((2, "plan"), (4, "turn 2")):
        trace.span(number, 1, turn, number, 1)
        trace.chat(number + 1, number, [said("user", "Go on.")], said("assistant", turn), number)
    trace.send(world.pipeline)

    page = read(world, f"/diff/{step(run, 3)}/{step(run, 5)}")

    heads = [one.one("b").text for one in page.all(class_="versus-side")]
    assert [head.partition(" in ")[2] for head in heads] == ["plan", "turn 2"]


def test_the_heads_of_two_calls_in_one_place_say_which_calls_they_are(world: World) -> None:
    run = world.new_run()
    trace = Trace(run)
    trace.agent(1, duration_s=9, name="planner")
    for number, answer in ((2, "one"), (3, "two"), (4, "three")):
        trace.chat(number, 1, [said("user", "Go on.")], said("assistant", answer), number)
    trace.send(world.pipeline)

    page = read(world, f"/diff/{step(run, 2)}/{step(run, 4)}")

    heads = [one.one("b").text for one in page.all(class_="versus-side")]
    assert [head.partition(", ")[2] for head in heads] == ["call 1", "call 3"]


@pytest.mark.covers("DF-01", "DF-03")
def test_a_step_offers_the_calls_around_it_and_its_compaction(world: World) -> None:
    page = read(world, f"/steps/{step(TALK, 4)}")
    hrefs = {
        one.text: one.attributes["href"]
        for one in page.one("details", class_="compare-with").all("a")
    }
    assert hrefs["previous call"] == f"/diff/{step(TALK, 3)}/{step(TALK, 4)}"
    assert hrefs["next call"] == f"/diff/{step(TALK, 4)}/{step(TALK, 9)}"
    folded = read(world, f"/steps/{step(TALK, 8)}").one("details", class_="compare-with")
    around = next(one for one in folded.all("a") if one.text == "before and after it")
    assert around.attributes["href"] == f"/diff/{step(TALK, 4)}/{step(TALK, 9)}"
    picked = read(world, f"/diff?left={step(TALK, 8)}")
    compaction = next(one for one in picked.all("a") if "Before and after" in one.text)
    assert compaction.attributes["href"] == f"/diff/{step(TALK, 4)}/{step(TALK, 9)}"


def test_calls_of_one_model_are_told_apart_by_what_they_said(world: World) -> None:
    picked = read(world, f"/diff?left={step(TALK, 4)}").one("table", class_="pick-calls")
    said = [one.text for one in picked.all("a", class_="rowlink")]
    assert len(set(said)) == len(said) > 1
    assert not any(one.startswith("chat ") for one in said)


def test_the_list_of_runs_leads_to_the_comparison_of_two(world: World) -> None:
    answer = world.http.get(f"/?compare={LEFT}&compare={RIGHT}")
    assert f'href="/diff/{LEFT}/{RIGHT}"' in answer.text
    chosen = world.http.get("/diff", params={"left": LEFT, "right": RIGHT})
    assert chosen.headers["location"] == f"/diff/{LEFT}/{RIGHT}"


def test_many_steps_are_shown_in_windows(world: World) -> None:
    runs = (world.new_run(), world.new_run())
    for run, extra in zip(runs, (0, 1), strict=True):
        trace = Trace(run)
        trace.agent(1)
        for number in range(2, 460):
            trace.span(number, 1, f"step {number} of {extra}", number / 1000)
        trace.send(world.pipeline)
    page = read(world, f"/diff/{runs[0]}/{runs[1]}")
    assert len([one for one in page.all(role="row") if "data-state" in one.attributes]) == 200
    later = next(one for one in page.all("a") if one.text == "Later rows")
    assert "from=200" in later.attributes["href"]
    following = read(world, later.attributes["href"])
    assert next(one for one in following.all("a") if one.text == "Earlier rows")


# ---- saved


def test_a_saved_comparison_holds_everything_and_asks_for_nothing(world: World) -> None:
    answer = world.http.get(f"/v1/diff/saved/{LEFT}/{RIGHT}")
    assert answer.status_code == 200
    assert 'filename="diff-a1a1a1a1-b2b2b2b2.html"' in answer.headers["content-disposition"]
    _stands_alone(answer.text)
    assert "budget, tokens 2,600 → 3,400" in answer.text


def test_a_saved_run_holds_its_steps_and_what_they_said(world: World) -> None:
    answer = world.http.get(f"/v1/runs/{RIGHT}/export?format=html")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    _stands_alone(answer.text)
    page = parse(answer.text).one("main")
    assert "Python's round() sends ties" in page.text
    assert "1 item redacted" in page.text  # what the compile did with its candidates
    assert len(page.all("details", class_="saved-step")) == 7


def test_a_prompt_that_grows_is_written_once(world: World) -> None:
    page = parse(world.http.get(f"/v1/runs/{TALK}/export?format=html").text).one("main")
    assert page.text.count("Question 0") == 1
    assert "messages of the prompt stand above" in page.text


def test_a_saved_run_is_bounded_and_says_what_it_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hansard_web.html_export.MOST_STEPS", 4)
    monkeypatch.setattr("hansard_web.html_export.MOST_CHARS", 10)
    text = world.http.get(f"/v1/runs/{RIGHT}/export?format=html").text
    assert "Left out of this file: 3 steps after the first" in text
    assert "the content of" in text


def _stands_alone(text: str) -> None:
    """No script, nothing to load, hostile text escaped, and a policy that shuts the rest out."""
    assert HOSTILE not in text
    assert "<script" not in text
    assert not re.search(r"<link\b", text)
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
    assert not re.search(r"url\((?!#)", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src" in policy[1]


def test_the_file_of_the_command_is_the_file_of_the_api(world: World, tmp_path: Path) -> None:
    path = tmp_path / "diff.html"
    arguments = [LEFT, RIGHT, "--data", str(world.folder.path), "--html", str(path)]
    ended = CliRunner().invoke(diff, arguments)
    assert ended.exit_code == 1, ended.output  # they differ
    _stands_alone(path.read_text("utf-8"))

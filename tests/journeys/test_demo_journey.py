"""Every page of a demo in a real browser: whole, readable in both themes, reached by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Request, Response, ViewportSize, expect

from tests.journeys.axe import COLOURS, violations
from tests.journeys.demo_story import Story
from tests.web.conftest import browser

__all__ = ["browser"]  # the fixture

_BAD = 2  # the turn whose patch was sent back
_DESK: Final[ViewportSize] = {"width": 1440, "height": 900}
_PHONE: Final = 390


@dataclass
class Watched:
    """A tab, and all that went wrong in it: words in its console, answers, foreign addresses."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda one: self.complaints.append(f"{one.type}: {one.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("response", self._answered)
        self.page.on("request", self._asked)

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked {request.url}")


@pytest.fixture
def tab(browser: Browser, story: Story) -> Iterator[Watched]:
    """A tab in which nothing may go wrong."""
    context = browser.new_context(
        base_url=story.address,
        viewport=_DESK,
        reduced_motion="reduce",  # a colour on its way from one to the other is neither
    )
    watched = Watched(context.new_page(), story.address)
    watched.watch()
    yield watched
    context.close()
    assert watched.complaints == []


# ---- every page


def _runs(story: Story) -> list[str]:
    first, _ = story.runs
    [failed] = [run["run_id"] for run in story.get("/v1/runs?status=error")["items"]]
    return [
        "/", "/?q=nobody-said-this", f"/runs/{first}", f"/runs/{first}?view=conversation",
        f"/runs/{first}?view=log", f"/runs/{failed}",
    ]  # fmt: skip


def _steps(story: Story) -> list[str]:
    run = story.runs[0]
    bad = story.call(run, _BAD)
    [refused] = [one["step_id"] for one in story.steps(run, "tool") if one["status"] == "error"]
    span = bad.partition("-")[2]
    tabs = ("conversation", "io", "attributes", "events", "raw")
    return [
        *(f"/steps/{bad}?tab={name}" for name in tabs),
        f"/runs/{run}?span={span}&tab=context",
        f"/steps/{bad}/context?item=CONVENTIONS.md", f"/steps/{refused}",
        f"/steps/{story.steps(run, 'memory')[0]['step_id']}",
        f"/steps/{_foreign_call(story)}?tab=context",
    ]  # fmt: skip


def _foreign_call(story: Story) -> str:
    """A later call of an agent that keeps no receipts: its context is derived."""
    runs = story.get("/v1/runs?conversation=order-a-1042")["items"]
    return story.call(max(runs, key=lambda run: run["model_calls"])["run_id"], -1)


def _comparisons(story: Story) -> list[str]:
    first, second = story.runs
    plan, bad = story.call(first, 0), story.call(first, _BAD)
    replays = [one["replay_id"] for one in story.get(f"/v1/replay?step={bad}")["items"]]
    return [
        f"/diff?left={bad}", f"/diff/{plan}/{bad}", f"/diff/{first}/{second}",
        f"/diff/{bad}/{bad}", f"/replay/{bad}", f"/replay/{bad}?act=mutated",
        *(f"/replays/{one}" for one in replays),
    ]  # fmt: skip


def _records(story: Story) -> list[str]:
    drafted = max(story.get("/v1/approvals")["items"], key=lambda one: one["revision"])
    [memory] = [one["memory_id"] for one in story.get("/v1/memory?project=shop")["items"]]
    talk = story.get("/v1/transcripts")["items"][0]["conversation_id"]
    return [
        "/approvals", "/approvals?status=open", f"/approvals/{drafted['approval_id']}",
        "/events", "/events/1", "/memory", f"/memory/{memory}",
        "/conversations", "/conversations?id=order-a-1042",
        "/transcripts", f"/transcripts/{talk}",
    ]  # fmt: skip


def _overviews(_: Story) -> list[str]:
    return [
        "/search", "/search?q=refund+policy", "/search?q=nobody-said-this",
        "/receipts?decision=exclude", "/usage", "/health", "/reports",
    ]  # fmt: skip


@pytest.mark.covers("UI-02", "UI-24")
@pytest.mark.parametrize("pages", [_runs, _steps, _comparisons, _records, _overviews])
def test_every_page_is_whole_accessible_in_both_themes_and_fits_a_phone(
    tab: Watched, story: Story, pages: Callable[[Story], list[str]]
) -> None:
    found = []
    for path in pages(story):
        tab.page.emulate_media(color_scheme="light")
        tab.page.goto(path)
        found += [f"{path}: {one}" for one in violations(tab.page)]
        tab.page.emulate_media(color_scheme="dark")
        found += [f"{path} in the dark: {one}" for one in violations(tab.page, *COLOURS)]
        tab.page.set_viewport_size({"width": _PHONE, "height": 900})
        wider = tab.page.evaluate("document.documentElement.scrollWidth") - _PHONE
        found += [f"{path} is {wider} px wider than a phone"] if wider > 0 else []
        tab.page.set_viewport_size(_DESK)

    assert found == []


def test_what_is_not_there_is_said_on_an_accessible_page(tab: Watched) -> None:
    tab.page.goto(f"/runs/{'f' * 32}")

    expect(tab.page.locator("h1")).to_have_text("Not Found")
    assert violations(tab.page) == []
    said, answered = tab.complaints
    tab.complaints.clear()
    assert (said[:3], "404" in answered) == ("404", True)


# ---- the links that the demo ends with

_ANSWERS = (
    "9 of 24 items",  # what the model knew, and what not
    "CONVENTIONS.md was included, now excluded",
    "This hides the cent instead of finding it.",
    "the same answer",
    "convention says: round once, at the end",  # what it says with more room
    "Round once, at the end",
    "memory “rounding” was not a candidate",
    "The exact tax is 0.0735",  # word for word
    "The chain is whole.",
    "All tests pass on release 1.4.",  # what the record contradicts
    "Correction: run_tests failed",  # what the next run was shown
    "claims judged: ",
)


_IN_THE_PROMPT = ("include", "compress", "redact")


@pytest.mark.covers("UI-14")
def test_planning_step_and_patch_step_differ_in_what_their_receipts_say(
    tab: Watched, story: Story
) -> None:
    """The receipts of both compiles, read one by one, against the comparison and its page."""
    run = story.runs[0]
    plan, patch = story.call(run, 0), story.call(run, _BAD)
    left, right = story.receipts(run, 0), story.receipts(run, _BAD)
    wanted = {}
    for item in left.keys() | right.keys():
        was, now = (one.get(item, {}).get("decision") for one in (left, right))
        if was != now:
            is_gone = now is not None and now not in _IN_THE_PROMPT
            wanted[item] = "added" if was is None else "excluded" if is_gone else "included"

    told = story.get(f"/v1/diff/steps/{plan}/{patch}")["compile"]["items"]
    tab.page.goto(f"/diff/{plan}/{patch}")
    shown = tab.page.locator("main").inner_text()

    found = {one["item_id"]: one["change"] for one in told}
    flipped = {item: found[item] for item in found if found[item] in {*wanted.values(), "removed"}}
    assert flipped == wanted
    assert len(wanted) > 10
    assert wanted["CONVENTIONS.md"] == "excluded"
    for one in told:
        if one["change"] == "excluded":
            assert one["name"] in shown
            assert one["right"]["reason"] == right[one["item_id"]]["reason"]


def test_every_question_of_the_demo_is_answered_behind_its_link(tab: Watched, story: Story) -> None:
    assert len(story.links) == len(_ANSWERS)
    for link, answer in zip(story.links, _ANSWERS, strict=True):
        tab.page.goto(link)
        expect(tab.page.locator("main")).to_contain_text(answer)


# ---- the keyboard alone

_MOST_STOPS = 40
_FOCUS = """
() => {
  const one = document.activeElement;
  const drawn = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const outlined = (shown, levels) => shown && levels && (drawn(getComputedStyle(shown))
    || drawn(getComputedStyle(shown, "::after")) || outlined(shown.parentElement, levels - 1));
  const box = one.getBoundingClientRect();
  return {
    what: one.textContent.trim().slice(0, 40) || one.outerHTML.slice(0, 80),
    isSomewhere: one !== document.body,
    isOutlined: Boolean(outlined(one, 3)),  // a field by the box around it, a row as a whole
    isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}
"""


class Keyboard:
    """Hands that never touch a mouse, and eyes that must see where they are after each key."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, *keys: str) -> None:
        """Press keys, each of which leaves the focus where it can be seen."""
        for key in keys:
            self._page.keyboard.press(key)
            self.sees_focus(key)

    def tab_to(self, name: str, *, key: str = "Tab") -> None:
        """Go on to what begins with a name; every stop on the way shows that it has the focus."""
        for _ in range(_MOST_STOPS):
            self._page.keyboard.press(key)
            if self.sees_focus(key).startswith(name):
                return
        raise AssertionError(f"no {name!r} within {_MOST_STOPS} stops")

    def opens(self, heading: str) -> None:
        """Press Enter on a link, and wait until the page behind it listens to keys."""
        self._page.keyboard.press("Enter")
        self.arrives(heading)

    def arrives(self, heading: str) -> None:
        expect(self._page.locator("h1")).to_contain_text(heading)
        self._page.wait_for_load_state("load")  # modules have run by then

    def sees_focus(self, after: str) -> str:
        """Return what has the focus."""
        focus = self._page.evaluate(_FOCUS)
        assert focus["isSomewhere"], (after, focus)
        assert focus["isOutlined"], (after, focus)
        assert focus["isInView"], (after, focus)
        return str(focus["what"])


def test_who_has_no_mouse_finds_out_why_a_patch_was_wrong(tab: Watched) -> None:
    page, hands = tab.page, Keyboard(tab.page)
    page.goto("/")

    # the run, from the list
    hands.press("/")
    page.keyboard.type("tool:remember")
    expect(page.locator("#run-count")).to_have_text("1 run")
    page.keyboard.press("Escape")  # closes the completions
    page.keyboard.press("Escape")
    hands.press("j")
    hands.opens("Make the failing test pass")

    # the call after the one that failed, and what was in its prompt
    page.keyboard.press("e")
    pane = page.locator("#step")
    expect(pane).to_contain_text("tests are not edited")
    for name in ("turn 3", "hansard.compile", "hansard.policy.check", "chat scripted-1"):
        hands.press("j")
        expect(pane.locator("h2").first).to_have_text(name)
    hands.tab_to("Context")
    page.keyboard.press("Enter")
    expect(pane).to_contain_text("candidates: ")
    hands.tab_to("Open with scores")
    hands.opens("Context")
    hands.press("/")
    page.keyboard.type("CONVENTIONS")
    expect(page.locator(".receipt")).to_have_count(1)
    page.keyboard.press("Escape")
    hands.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".inspect")).to_contain_text("No room left")

    # what changed since the call before it
    hands.tab_to("Compare with", key="Shift+Tab")
    page.keyboard.press("Enter")
    hands.tab_to("previous call")
    hands.opens("Two steps of one run")
    hands.press("n", "n", "p")
    expect(page.locator("[data-change-say]")).to_contain_text("change 1 of")

    # and who sent the patch back
    page.keyboard.press("g")
    page.keyboard.press("a")
    hands.arrives("Approvals")
    hands.press("j", "j", "j")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("This hides the cent instead of finding it.")


def test_the_patch_that_was_sent_back_is_shown_as_not_run_with_a_link_to_the_next_draft(
    tab: Watched, story: Story
) -> None:
    run = story.runs[0]
    drafts = [
        one["step_id"]
        for one in story.steps(run, "tool")
        if (story.get(f"/v1/steps/{one['step_id']}")["gate"] or {}).get("approval_id")
        and one["name"] == "execute_tool apply_patch"
    ]
    page = tab.page

    page.goto(f"/runs/{run}?span={drafts[0].partition('-')[2]}")
    gate = page.get_by_role("group", name="What the gate did")

    expect(gate.locator("li")).to_have_text(["requested", "sent back by rosa (draft 1)", "not run"])
    expect(gate).not_to_contain_text("approved")
    gate.get_by_role("link", name="see draft 2").click()
    page.wait_for_url(f"**/steps/{drafts[1]}")
    expect(page.get_by_role("group", name="What the gate did").locator("li")).to_have_text(
        ["requested", "approved by rosa", "ran", "returned"]
    )
    page.goto(f"/runs/{run}?view=conversation")
    held = page.locator(".call", has_text="Sent back with a note").first
    expect(held).to_contain_text("sent back by rosa")
    expect(held).to_contain_text("not run")

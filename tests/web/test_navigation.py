"""The table of pages: names and keys are unique, and every page of it answers and is marked."""

from __future__ import annotations

from starlette.testclient import TestClient

from hansard_web.ui.navigation import MORE, PLACES, PRIMARY
from tests.web.html import parse
from tests.web.makers import RunMaker


def test_names_keys_and_addresses_are_unique() -> None:
    for values in zip(*((one.name, one.key, one.href, one.label) for one in PLACES), strict=True):
        assert len(set(values)) == len(PLACES)
    assert all(len(one.key) == 1 and one.hint for one in PLACES)
    assert (*PRIMARY, *MORE) == tuple(sorted(PLACES, key=lambda one: one.is_more))


def test_each_page_is_marked_in_the_bar_or_in_the_menu(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    for place in PLACES:
        answer = client.get(place.href)
        assert answer.status_code == 200, place
        nav = parse(answer.text).one("nav", class_="nav")
        marked = [one for one in nav.all("a") if one.attributes.get("aria-current") == "page"]
        assert [(one["href"], one["data-go"]) for one in marked] == [(place.href, place.key)]
        button = nav.one("button", popovertarget="nav-others")
        assert ("is-here" in button["class"]) == place.is_more


def test_a_store_without_runs_answers_every_page(client: TestClient) -> None:
    answers = {place.href: client.get(place.href).status_code for place in PLACES}

    assert set(answers.values()) == {200}, answers

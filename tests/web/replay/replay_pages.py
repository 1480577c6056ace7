"""What tests of the replay's pages share: reading them, and filling in their forms."""

from __future__ import annotations

from typing import Any

from httpx2 import Response

from tests.web.html import Element, parse
from tests.web.replay.stage import Stage


class Pages:
    """The pages of a stage, without following redirects."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def get(self, path: str, *, status: int = 200) -> Element:
        answer = self.stage.client.get(path)
        assert answer.status_code == status, answer.text
        return parse(answer.text).one("main")

    def post(self, path: str, **fields: Any) -> Response:
        """Submit a form with the token that the page gave."""
        csrf = parse(self.stage.client.get("/").text).all("input", name="csrf")[0]["value"]
        return self.stage.client.post(path, data={"csrf": csrf, **fields}, follow_redirects=False)

    def change(self, step_id: str, state: str = "", **fields: Any) -> str:
        """Fill in the form of changes over a state; returns the address it leads to."""
        told: dict[str, Any] = {"act": "mutated"}
        if state:
            form = self.get(state).one("form", id="change-form")
            told["change"] = [one["value"] for one in form.all("input", name="change")]
        answer = self.post(f"/replay/{step_id}/preview", **{**told, **fields})
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def send(self, step_id: str, **fields: Any) -> Element:
        """Send a replay, wait for its end, and return the page of what became of it."""
        answer = self.post(f"/replay/{step_id}", **fields)
        assert answer.status_code == 303, answer.text
        there = str(answer.headers["location"])
        self.stage.replays.wait(there.rpartition("/")[2], seconds=30)
        return self.get(there)


def acts(page: Element) -> dict[str, Element]:
    """Return the cards, by what they do."""
    return {one["data-act"]: one for one in page.all(class_="act")}


def chips(page: Element) -> list[str]:
    """Return the changes as they are listed."""
    listed = page.all("li", class_="mut")
    return [f"{one.one('b').text} {one.one(class_='mut-set').text}" for one in listed]


def flips(page: Element) -> dict[str, str]:
    """Return what a preview says becomes of each item."""
    rows = [one for one in page.all("li") if "data-item" in one.attributes]
    return {one["data-item"]: one["data-change-kind"] for one in rows}

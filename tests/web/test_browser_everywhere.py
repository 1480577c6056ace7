"""Every page of the table, and a page of each kind that they lead to, over a hostile store:
at four widths, in light and dark, it fits its window, its console is silent, axe finds nothing, and
its scripts stay within their budget.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.ui.navigation import PLACES
from tests.instrumentation.transcript_maker import assistant, say, user
from tests.journeys.axe import violations
from tests.web.conftest import Served
from tests.web.traces import Trace, said

WIDTHS: Final = (1440, 1024, 768, 390)
AXE_WIDTHS: Final = (1440, 390)
SCRIPT_BYTES: Final = 110_000  # unpacked, of all that a page loads
SIDEWAYS: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LONG: Final = "w" * 400
MARKUP: Final = "<img src=x onerror=alert(1)><b>bold</b>&amp;"
REVERSED: Final = "\u202eשלום עולם " + "ב" * 200
NAMES: Final = (LONG, MARKUP, REVERSED)
LINKS: Final = """() => [...document.querySelectorAll('main a[href]')].map(one => one.href)"""
SCRIPTS: Final = """() => performance.getEntriesByType('resource')
  .filter(one => one.initiatorType === 'script' || /\\.js$/.test(one.name))
  .reduce((sum, one) => sum + one.decodedBodySize, 0)"""


def fill(served: Served, pipeline: Pipeline) -> None:
    """Runs, sessions, users, approvals, memory and transcripts of names that nobody expects."""
    for number, name in enumerate(NAMES, 1):
        trace = Trace(f"{number:032x}", service=name)
        trace.agent(1, name=name, gen_ai__conversation__id=name, user__id=name)
        trace.chat(2, 1, [said("user", name)], said("assistant", name), model=name)
        trace.tool(3, 1, name, "c1", 4, result=name)
        trace.span(5, 1, name, failed=name)
        trace.send(pipeline)
    folder = served.app.state.site.folder
    with ApprovalService(folder, source="api") as store:
        for name in NAMES:
            tool = name.replace("\u202e", "")[:190]  # the longest that is taken
            store.propose(Proposal(tool, {"to": name}, description=name, agent=tool))
    transcripts = SqliteTranscripts(folder, RetentionMode.REDACTED_PAYLOADS, Redactor(folder.key()))
    say(transcripts, transcripts.ensure(LONG).id, user(LONG), assistant(MARKUP))


def kind_of(url: str) -> str:
    """Return the page of an address without what it shows: ids, names and conditions."""
    parts = urlsplit(url)
    path = re.sub(r"/[^/]*(?:[0-9a-f]{8}|%|w{20}|\d)[^/]*", "/*", parts.path)
    return path + ("?id" if re.search(r"(?:^|&)id=", parts.query) else "")


def addresses(page: Page, base: str) -> list[str]:
    """Return every place, and one address of each kind of page that those lead to."""
    found = {kind_of(base + place.href): place.href for place in PLACES}
    for place in PLACES:
        page.goto(place.href)
        for link in page.evaluate(LINKS):
            if link.startswith(base) and "/v1/" not in link and "/static/" not in link:
                found.setdefault(kind_of(link), link.removeprefix(base))
    return list(found.values())


def problems_of(page: Page, address: str) -> list[str]:
    """Return what is wrong with a page in light and dark, from wide to narrow."""
    found = []
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    answer = page.goto(address)
    if answer is None or answer.status != 200:
        return [f"{address}: status {answer and answer.status}"]
    scripts = page.evaluate(SCRIPTS)
    if scripts > SCRIPT_BYTES:
        found.append(f"{address}: {scripts} bytes of scripts")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            at = f"{address[:80]} at {width} {scheme}"
            over = page.evaluate(SIDEWAYS)
            if over > 1:
                found.append(f"{at}: {over} px sideways")
            if width in AXE_WIDTHS:
                found += [f"{at}: {one['id']} {one['at']}" for one in violations(page)]
    return found


@pytest.mark.slow
@pytest.mark.covers("UI-26")
def test_every_page_fits_is_silent_and_accessible_whatever_things_are_called(
    page: Page, served: Served, pipeline: Pipeline
) -> None:
    fill(served, pipeline)

    visited = addresses(page, served.url)
    found = [one for address in visited for one in problems_of(page, address)]

    assert found == []
    assert len(visited) > len(PLACES) + 5

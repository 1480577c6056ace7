"""Every link and every form of the pages leads somewhere, whatever the ids are called."""

from __future__ import annotations

from urllib.parse import urldefrag, urljoin, urlsplit

from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.traces import Trace, said, tool_loop

MOST = 250  # pages to read; folds and filters make ever new addresses of the same few pages


def leads_of(page: Element) -> set[str]:
    """Return what a click or a scroll may ask for."""
    links = {link["href"] for link in page.all("a") if "href" in link.attributes}
    later = {part["hx-get"] for part in page.walk() if "hx-get" in part.attributes}
    forms = {form["action"] for form in page.all("form") if form.attributes.get("method") != "post"}
    return {lead for lead in links | later | forms if not lead.startswith("#")}


def kind_of(address: str) -> tuple[str, ...]:
    """Return what tells addresses of one page apart from those of others: path, query names."""
    parts = urlsplit(address)
    return (parts.path, *sorted(pair.partition("=")[0] for pair in parts.query.split("&")))


def test_every_lead_of_every_page_is_answered(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    for number, name in enumerate(("talk/1?x=../%2e&y#z", "..", "a b+ü"), 1):
        odd = Trace(f"{number:032x}", service=name)
        odd.agent(1, name=name, gen_ai__conversation__id=name, user__id=name)
        odd.chat(2, 1, [said("user", "test me")], said("assistant", "no"), model=name)
        odd.span(3, 1, "fails", failed=name)
        odd.send(pipeline)
    waiting, seen = ["/", "/health", "/usage", "/search?q=test"], set[tuple[str, ...]]()
    broken = []
    while waiting and len(seen) < MOST:
        address = waiting.pop(0)
        if kind_of(address) in seen or address.startswith("/live/"):
            continue
        seen.add(kind_of(address))
        answer = client.get(address, follow_redirects=True)
        if answer.status_code == 204:  # nothing new to show
            continue
        if answer.status_code != 200:
            broken.append((answer.status_code, address))
        elif answer.headers["content-type"].startswith("text/html"):
            found = leads_of(parse(answer.text))
            waiting += sorted(urldefrag(urljoin(address, lead)).url for lead in found)

    assert broken == []
    assert len(seen) > 60

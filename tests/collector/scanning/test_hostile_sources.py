"""Sources that are down, slow or hostile: a scan ends, counts what failed, and keeps no secret."""

from __future__ import annotations

import json
import socket

import pytest

from hansard_collector.scanning import (
    HackerNews,
    InvalidScannerResponse,
    SourceUnavailable,
    check_address,
)
from hansard_compiler.errors import ConfigError
from tests.collector.scanning.hacker_news import Answer, dripping, status
from tests.collector.scanning.scanning_maker import Scanning

SECRET = "sk-proj-" + "T9xQz7LmW2vRk4NbY8cJ1hGd5sFp3aKe6uVi0oXw"
LIST, BAD = "/topstories.json", 21
HTML = "<img src=x onerror=alert(1)> bread & <script>bread</script>"


def item(**more: object) -> bytes:
    told = {"id": BAD, "title": "Bread", "score": 1, "url": "https://example.com/b"}
    return json.dumps({**told, **more}).encode()


@pytest.fixture
def baking(scanning: Scanning) -> Scanning:
    """An interest, and a story near it."""
    scanning.write("bread")
    scanning.server.add(11, "Bread before")
    return scanning


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (item(title="x" * 20_000_000), "more than 262,144 bytes"),
        (item(title="x" * 1_001), "title"),
        (item(title=["Bread"]), "title"),
        (item(title=" \u202e\x00 "), "no title"),
        (item(id=22), "answered item 22"),
        (item(id="21"), "id"),
        (item(score=10**30), "score"),
        (item(score="many"), "score"),
        (item(url="javascript:alert(1)"), "none of the web"),
        (item(url="https://exa mple.com/"), "none of the web"),
        (item(url="https://[::1/"), "none of the web"),
        (b"null", "item/21.json"),
        (b'{"id": 21, "deleted": true}', "title"),
        (b'{"id": 21, "title": "Bread \xff\xfe"}', "item/21.json"),
        (b'{"id": 21, "title": "Bread \\ud800"}', "item/21.json"),
        (b"[" * 100_000, "item/21.json"),
        (b"", "item/21.json"),
        (b"<html>Bread</html>", "item/21.json"),
        (status(404), "answered 404"),
        (status(301, "Location: https://example.com/"), "answered 301"),
        (lambda out: None, "cannot be reached"),
        (lambda out: out.write(b"SSH-2.0-OpenSSH_9\r\n"), "does not speak HTTP"),
    ],
)
def test_a_story_that_cannot_be_meant_is_counted_and_the_others_go_on(
    baking: Scanning, answer: Answer, says: str
) -> None:
    baking.server.raw(BAD, answer)
    baking.server.add(31, "Bread behind")

    result = baking.scan()

    assert baking.outcomes(result) == {"11": "accepted", "21": "failed", "31": "accepted"}
    [failed] = [one for one in result.stories if one.error]
    assert says in str(failed.error)
    assert len(str(failed.error)) < 200
    assert not result.has_failed
    assert baking.rows("SELECT story_id FROM processed_story") == [("11",), ("31",)]


def test_what_a_title_says_is_text_and_nothing_else(baking: Scanning) -> None:
    baking.server.add(12, HTML)
    baking.server.add(13, "Ignore \x1b[31mall\x1b[0m\r\nprevious bread\u2028\u0000")

    baking.scan()

    said = {one["attribute"]: one["content"].partition("\n")[0] for one in baking.notes()}
    assert said["hackernews:12"] == HTML
    assert said["hackernews:13"] == "Ignore [31mall [0m previous bread"


def test_a_secret_in_a_title_or_an_address_is_on_no_disk_and_before_no_classifier(
    baking: Scanning,
) -> None:
    baking.server.add(12, f"Bread {SECRET}", url=f"https://example.com/?key={SECRET}")

    baking.scan()

    assert [one for one in baking.classifier.asked if SECRET in one] == []
    assert len(baking.notes()) == 2
    files = [path for path in baking.folder.path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"null", b"{}", b'["11"]', b"[1.5]", b"[-1]", b"[11, 12", b"\xff", b"[" * 60_000,
     b"[" + b"1," * 40_000 + b"1]", status(404)],
)  # fmt: skip
def test_a_list_that_is_none_ends_the_scan(baking: Scanning, answer: Answer) -> None:
    baking.server.answers[LIST] = answer

    with pytest.raises(InvalidScannerResponse):
        baking.scan()

    assert baking.server.items_asked == []


def test_a_list_that_names_a_story_twice_has_it_once(baking: Scanning) -> None:
    baking.server.answers[LIST] = b"[11, 11, 11]"

    assert baking.outcomes(baking.scan()) == {"11": "accepted"}


@pytest.mark.parametrize("answer", [status(500), status(503), status(429)])
def test_a_source_in_trouble_is_down(baking: Scanning, answer: Answer) -> None:
    baking.server.answers[LIST] = answer

    with pytest.raises(SourceUnavailable):
        baking.scan()


def test_a_source_that_is_not_there_is_down() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"

        with pytest.raises(SourceUnavailable, match="cannot be reached"):
            HackerNews(address).top(1)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 " + b"o" * 500,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n[",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
    ],
    ids=["its first line", "a body of known length", "a body in chunks"],
)
def test_an_answer_that_drips_is_given_up_in_time(baking: Scanning, head: bytes) -> None:
    baking.server.answers[LIST] = dripping(head)

    with pytest.raises(SourceUnavailable, match=r"did not answer within 0\.2 s"):
        baking.scan(timeout_s=0.2)


def test_a_source_that_goes_down_is_not_asked_for_all_the_rest(baking: Scanning) -> None:
    for number in range(21, 31):
        baking.server.raw(number, status(503))

    result = baking.scan()

    assert result.figures["failed"] == 3
    assert result.figures["left"] == 7
    assert len(baking.server.items_asked) == 4
    assert result.has_failed


@pytest.mark.parametrize(
    "address",
    ["hackernews", "ftp://example.com", "https://", "http://example.com:port", "http://example.com:0",
     "https://example.com/?q=", "https://user:secret@example.com", "https://exämple.com",
     "https://example.com/\n"],
)  # fmt: skip
def test_an_address_that_cannot_be_meant_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="expected https"):
        check_address(address)

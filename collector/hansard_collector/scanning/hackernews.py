"""Hacker News, by its public JSON API (https://github.com/HackerNews/API): no key is needed."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hansard_collector.scanning.errors import BadAnswer, SourceDown
from hansard_collector.timed_response import TimedResponse
from hansard_compiler.errors import ConfigError
from hansard_store.stories.rows import Story

HOME: Final = "https://hacker-news.firebaseio.com/v0"
_DISCUSSION: Final = "https://news.ycombinator.com/item?id="
_TIMEOUT_S: Final = 10.0
_LIST_BYTES: Final = 64 * 1024  # 500 ids are 5 KB
_STORY_BYTES: Final = 256 * 1024  # of a title, a text and the ids of all comments
_MOST: Final = 2**63 - 1


class _Item(BaseModel):
    """What is read of an item; further fields are nobody's business here."""

    model_config = ConfigDict(strict=True)

    id: int
    title: Annotated[str, Field(max_length=1_000)]
    url: Annotated[str, Field(max_length=2_048)] | None = None  # None: of a question asked there
    score: Annotated[int, Field(ge=-_MOST, le=_MOST)] = 0


_IDS: Final = TypeAdapter(list[Annotated[int, Field(strict=True, gt=0, le=_MOST)]])
_ITEM: Final = TypeAdapter(_Item)


class HackerNews:
    """Its top stories, by id."""

    name = "hackernews"

    def __init__(self, address: str | None = None, *, timeout_s: float = _TIMEOUT_S) -> None:
        """Make it; `address` is that of a mirror, or of a test. Raises ConfigError."""
        self._address = check_address(address or HOME)
        self._timeout_s = timeout_s

    def top(self, limit: int) -> list[str]:
        """Return ids of the top stories, the first first; there are 500 at most."""
        ids: list[int] = self._get("topstories.json", _IDS, most_bytes=_LIST_BYTES)
        return [str(one) for one in dict.fromkeys(ids)][:limit]

    def story(self, story_id: str) -> Story:
        """Fetch a story. One that was deleted is a BadAnswer: `null`, or one without a title."""
        item: _Item = self._get(f"item/{story_id}.json", _ITEM, most_bytes=_STORY_BYTES)
        if str(item.id) != story_id:
            raise BadAnswer(f"asked for item {story_id}, and was answered item {item.id}")
        title = _one_line(item.title)
        if not title:
            raise BadAnswer(f"item {story_id} has no title")
        url = item.url or _DISCUSSION + story_id
        if not _is_link(url):
            raise BadAnswer(f"item {story_id} has an address that is none of the web")
        return Story(self.name, story_id, title, url, item.score)

    def _get(self, path: str, form: TypeAdapter[Any], *, most_bytes: int) -> Any:
        url = f"{self._address}/{path}"
        body = fetch(url, timeout_s=self._timeout_s, most_bytes=most_bytes)
        try:
            return form.validate_json(body)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(map(str, found["loc"])) or "the answer"
            raise BadAnswer(f"{path}: {where}: {found['msg']}") from None


def _one_line(title: str) -> str:
    """Return a title without line breaks and whatever else is not printed."""
    return " ".join("".join(one if one.isprintable() else " " for one in title).split())


def _is_link(url: str) -> bool:
    """Whether it leads into the web, and reads as it is; never `javascript:`, for one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_plain = url.isprintable() and " " not in url
    return is_plain and parts.scheme in ("http", "https") and bool(parts.hostname)


# One GET over HTTP that ends: in time however slowly it drips, and within a number of bytes.

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hansard"}
_CONNECTIONS = {"http": HTTPConnection, "https": HTTPSConnection}


def check_address(address: str) -> str:
    """Return an address that can be fetched from, without a slash at its end."""
    try:
        parts = urlsplit(address)
        is_place = parts.scheme in _CONNECTIONS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_place = False
    is_plain = address.isascii() and address.isprintable() and not set(address) & set(" ?#@")
    if not is_place or not is_plain:
        raise ConfigError(f"{address!r} is no address of a source; expected https://… or http://…")
    return address.rstrip("/")


def fetch(url: str, *, timeout_s: float, most_bytes: int) -> bytes:
    """Return the body at an address.

    It has `timeout_s` to be reached, and as long again to answer the whole. Follows no redirect:
    whoever permits one address has not permitted another. Raises SourceDown or BadAnswer.
    """
    parts = urlsplit(url)
    host = str(parts.hostname)
    connection = _CONNECTIONS[parts.scheme](host, parts.port, timeout=timeout_s)
    connection.response_class = TimedResponse
    try:
        connection.request("GET", parts.path, headers=_HEADERS)
        return _body(connection.getresponse(), host, most_bytes=most_bytes)
    except TimeoutError:
        raise SourceDown(f"{host} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise SourceDown(f"{host} cannot be reached: {error}") from None
    except HTTPException as error:
        raise BadAnswer(f"{host} does not speak HTTP: {type(error).__name__}") from None
    finally:
        connection.close()


def _body(response: HTTPResponse, host: str, *, most_bytes: int) -> bytes:
    status = response.status
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise SourceDown(f"{host} answered {status}")
    if status != HTTPStatus.OK:
        raise BadAnswer(f"{host} answered {status}; expected 200")
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise BadAnswer(f"{host} answered more than {most_bytes:,} bytes")
    return body

"""Scanning: top stories of an outside source, held against the interests in memory.

Nothing here runs by itself: `hansard scan` does it, when a person or cron calls it and the setting
`outbound` permits it. A story that fails is counted and left for the next scan; the others go on.

ScanError
├── SourceUnavailable       it cannot be reached, or does not answer in time: later it may
├── InvalidResponse        what it answered is not what its API says
├── InvalidVerdict       what a classifier answered cannot be meant
├── NoInterests      there is nothing to hold stories against
├── ScanIncomplete   source or classifier went down, or nothing that was listed is of use
└── ScanRunning     another process scans for this store
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Protocol, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hansard_collector.timed_response import TimedResponse
from hansard_compiler.classifier import Classifier, ClassifierQuestion, WordOverlap
from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.providers.transport.failures import CallFailed
from hansard_store.memory.records import Memory
from hansard_store.stories.rows import AlreadyProcessed, JudgedStory, Story
from hansard_store.stories.service import StoryService


class ScanError(HansardError):
    """A scan, or one story of it, that came to nothing."""

    code = "scan_failed"


class SourceUnavailable(ScanError):
    """The source cannot be reached now."""

    code = "source_unavailable"


class InvalidScannerResponse(ScanError):
    """A response that is invalid, or larger than any valid one."""

    code = "invalid_response"


class InvalidVerdict(ScanError):
    """A classifier returned an unknown label, or a score that is no share."""

    code = "invalid_verdict"

    def __init__(self, classifier: str) -> None:
        super().__init__(f"the classifier {classifier!r} answered with another label, or no share")


class NoInterests(ScanError):
    """Memory names no interest."""

    code = "no_interests"

    def __init__(self) -> None:
        super().__init__(
            "memory holds no interest to scan for; write one: hansard memory write "
            "'SQLite full text search' --type interest --subject search --project NAME --writer app"
        )


class ScanIncomplete(ScanError):
    """Stories are left for the next scan."""

    code = "scan_incomplete"

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} or the classifier went down, or answered nothing of use; "
            "the next scan goes on"
        )


class ScanRunning(ScanError):
    """Two scans at once would classify stories twice."""

    code = "scan_running"

    def __init__(self) -> None:
        super().__init__("another scan of this store is under way")


# Hacker News, by its public JSON API (https://github.com/HackerNews/API): no key is needed.


HOME: Final = "https://hacker-news.firebaseio.com/v0"
_DISCUSSION: Final = "https://news.ycombinator.com/item?id="
_TIMEOUT_S: Final = 10.0
_LIST_BYTES: Final = 64 * 1024  # 500 ids are 5 KB
_STORY_BYTES: Final = 256 * 1024  # of a title, a text and the ids of all comments
_MOST: Final = 2**63 - 1


class _Item(BaseModel):
    """What is read of an item; further fields are ignored."""

    model_config = ConfigDict(strict=True)

    id: int
    title: Annotated[str, Field(max_length=1_000)]
    url: Annotated[str, Field(max_length=2_048)] | None = None  # None: of a post without a link
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
        """Fetch a story.

        One that was deleted is an InvalidResponse: `null`, or one without a title.
        """
        item: _Item = self._get(f"item/{story_id}.json", _ITEM, most_bytes=_STORY_BYTES)
        if str(item.id) != story_id:
            raise InvalidScannerResponse(
                f"asked for item {story_id}, and was answered item {item.id}"
            )
        title = _one_line(item.title)
        if not title:
            raise InvalidScannerResponse(f"item {story_id} has no title")
        url = item.url or _DISCUSSION + story_id
        if not _is_link(url):
            raise InvalidScannerResponse(f"item {story_id} has an address that is none of the web")
        return Story(self.name, story_id, title, url, item.score)

    def _get(self, path: str, form: TypeAdapter[Any], *, most_bytes: int) -> Any:
        url = f"{self._address}/{path}"
        body = fetch(url, timeout_s=self._timeout_s, most_bytes=most_bytes)
        try:
            return form.validate_json(body)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(map(str, found["loc"])) or "the answer"
            raise InvalidScannerResponse(f"{path}: {where}: {found['msg']}") from None


def _one_line(title: str) -> str:
    """Return a title without line breaks and unprintable characters."""
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
    permission for one address is none for another. Raises SourceUnavailable or
    InvalidResponse.
    """
    parts = urlsplit(url)
    host = str(parts.hostname)
    connection = _CONNECTIONS[parts.scheme](host, parts.port, timeout=timeout_s)
    connection.response_class = TimedResponse
    try:
        connection.request("GET", parts.path, headers=_HEADERS)
        return _body(connection.getresponse(), host, most_bytes=most_bytes)
    except TimeoutError:
        raise SourceUnavailable(f"{host} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise SourceUnavailable(f"{host} cannot be reached: {error}") from None
    except HTTPException as error:
        raise InvalidScannerResponse(
            f"{host} does not speak HTTP: {type(error).__name__}"
        ) from None
    finally:
        connection.close()


def _body(response: HTTPResponse, host: str, *, most_bytes: int) -> bytes:
    status = response.status
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise SourceUnavailable(f"{host} answered {status}")
    if status != HTTPStatus.OK:
        raise InvalidScannerResponse(f"{host} answered {status}; expected 200")
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise InvalidScannerResponse(f"{host} answered more than {most_bytes:,} bytes")
    return body


# Where stories come from: what a source can do, and the table of those there are.


class StorySource(Protocol):
    """A place that ranks stories. Both calls raise SourceUnavailable or InvalidResponse."""

    @property
    def name(self) -> str:
        """What its stories are filed under."""

    def top(self, limit: int) -> Sequence[str]:
        """Return ids of the top stories, the first first, each once."""

    def story(self, story_id: str) -> Story:
        """Fetch one story."""


# Each is made with its address, None for its own.
SOURCES: Final[Mapping[str, Callable[[str | None], StorySource]]] = MappingProxyType(
    {"hackernews": HackerNews}
)


# A scan: fetch what is new among a source's top stories, classify each once, keep what was said.
#
# A story that fails is counted and left for the next scan; the others go on.


LIMIT: Final = 30  # a front page
THRESHOLD: Final = 0.6  # two of three words, or three of five
MOST_STORIES: Final = 500
_MOST_DOWN: Final = 3  # in a row: then the source, or the classifier's provider, is down

Progress = Callable[[str, int, int], None]  # of what, how many by now, and of how many
Outcome = Literal["accepted", "refused", "failed", "known", "left"]


@dataclass(frozen=True, slots=True)
class Scanned:
    """The outcome of one story of the list."""

    story_id: str
    outcome: Outcome
    story: Story | None = None  # None: it was not fetched, or could not be
    interest: Memory | None = None  # the nearest
    score: float = 0.0  # how near
    memory_id: str | None = None  # the note that an accepted one became; None in a dry run
    error: HansardError | None = None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan did, story by story."""

    source: str
    classifier: str
    interests: int
    stories: Sequence[Scanned]

    @property
    def figures(self) -> Mapping[str, int]:
        """How many stories were listed and fetched, and how many came to which end."""
        ends = Counter(one.outcome for one in self.stories)
        counts = {end: ends[end] for end in get_args(Outcome)}
        listed = len(self.stories)
        fetched = sum(one.story is not None for one in self.stories)
        return {"listed": listed, "fetched": fetched, **counts}

    @property
    def has_failed(self) -> bool:
        """Whether source or classifier went down, or nothing that was listed is of use.

        A story that fails among others is none of its faults: deleted ones stay on lists for days.
        """
        figures = self.figures
        return figures["left"] > 0 or 0 < figures["failed"] == figures["listed"]


@dataclass(frozen=True, slots=True)
class Scanner:
    """Holds the stories of one source against the interests in memory."""

    source: StorySource
    service: StoryService
    classifier: Classifier = field(default_factory=WordOverlap)
    threshold: float = THRESHOLD
    is_dry: bool = False  # nothing is stored: the next scan classifies them again

    def scan(self, *, limit: int = LIMIT, progress: Progress = lambda *_: None) -> ScanResult:
        """Scan the top stories.

        Raises NoInterests, and SourceUnavailable or InvalidResponse for the list.
        """
        interests = self.service.interests()
        if not interests:
            raise NoInterests
        ids = self.source.top(limit)
        known = self.service.known(self.source.name, ids)
        labels = labels_of(interests)
        stories = []
        for scanned in self._each(ids, known, labels):
            stories.append(scanned)
            progress("stories", len(stories), len(ids))
        return ScanResult(self.source.name, self.classifier.name, len(interests), stories)

    def _each(
        self, ids: Sequence[str], known: set[str], labels: Mapping[str, Memory]
    ) -> Iterator[Scanned]:
        down = 0
        for story_id in ids:
            if story_id in known or down == _MOST_DOWN:
                yield Scanned(story_id, "known" if story_id in known else "left")
                continue
            story = None
            try:
                # Before anything is done with it: a classifier may be a model elsewhere.
                story = self.service.without_secrets(self.source.story(story_id))
                yield self._one(story, labels)
                down = 0
            except AlreadyProcessed:
                yield Scanned(story_id, "known")
            except HansardError as error:
                down = down + 1 if isinstance(error, SourceUnavailable | CallFailed) else 0
                yield Scanned(story_id, "failed", story, error=error)

    def _one(self, story: Story, labels: Mapping[str, Memory]) -> Scanned:
        verdict = self.classifier(ClassifierQuestion("topic", story.title, tuple(labels)))
        if verdict.label not in (None, *labels) or not 0 <= verdict.score <= 1:
            raise InvalidVerdict(self.classifier.name)
        interest = labels[verdict.label] if verdict.label is not None else None
        number = None if interest is None else interest.id
        judged = JudgedStory(story, number, self.classifier.name, verdict.score, self.threshold)
        note = None if self.is_dry else self.service.record(judged, interest)
        return Scanned(
            story.story_id,
            "accepted" if judged.is_accepted else "refused",
            story,
            interest,
            verdict.score,
            None if note is None else note.memory_id,
        )


def labels_of(interests: Sequence[Memory]) -> dict[str, Memory]:
    """Return the labels of a story: the text of each interest, or its subject if that is no text.

    Not its subject beside that: "search" is a name for "SQLite full text search", and too wide.
    """
    labels: dict[str, Memory] = {}
    for interest in interests:
        text = interest.content if isinstance(interest.content, str) else interest.subject
        labels.setdefault(text, interest)
    return labels

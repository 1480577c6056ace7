"""Every compound write of memory, transcripts, tasks and stories; account_paths.py has the others.

Walked by the tests that fail it, or kill it, before each of its statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.compile.models import parse
from hansard_compiler.models.memory import AcceptMemory, EndMemory, ReadMemory
from hansard_compiler.models.tasks import Decide
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.ids import ConversationId
from hansard_store.audit.event_types import EventFilter, EventType
from hansard_store.audit.events import read_events, verify_events
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import RULES, DetectionFinding, Occurrence
from hansard_store.memory.service import MemoryService
from hansard_store.stories.rows import JudgedStory, Story
from hansard_store.stories.service import StoryService
from hansard_store.tasks.service import TaskService
from hansard_store.transcripts.service import SqliteTranscripts
from tests.instrumentation.transcript_maker import assistant, call, result, say, user
from tests.store.accounts import HOUR, MINUTE, NOW, RUN, STEP
from tests.store.empty import empty_store

_STORY = Story("hackernews", "11", "Bread", "https://example.com/11", 110)


class Books:
    """All books over one data folder, at one time."""

    def __init__(self, path: Path, now_ns: int = NOW) -> None:
        self.folder = empty_store(path)
        mode, redactor = RetentionMode.REDACTED_PAYLOADS, Redactor(self.folder.key())
        self.now_ns = now_ns
        self.memory = MemoryService(self.folder, mode, clock=self._clock)
        self.stories = StoryService(self.folder, mode, clock=self._clock)
        self.tasks = TaskService(self.folder, mode, clock=self._clock)
        self.talks = SqliteTranscripts(self.folder, mode, redactor, clock=self._clock)

    def _clock(self) -> int:
        return self.now_ns

    def close(self) -> None:
        self.memory.close()
        self.stories.close()
        self.tasks.close()

    def remember(self, content: str = "Money is Decimal.", **more: Any) -> str:
        """Write a durable record as the program itself, unless told otherwise; its id."""
        told = {
            "writer": "app", "memory_type": "constraint", "subject": "money", "attribute": "type",
            "namespace": {"project": "quillbook"}, "run_id": RUN, "step_id": STEP,
        }  # fmt: skip
        written: Json = self.memory.write_json({**told, "content": content, **more})["memory"]
        return str(written["memory_id"])


@contextmanager
def books(path: Path, now_ns: int = NOW) -> Iterator[Books]:
    """Open all books for the block."""
    made = Books(path, now_ns)
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True, slots=True)
class BookWrite:
    """One way to write, the types of its events, and the states of memory it leaves."""

    prepare: Callable[[Books], Any]
    act: Callable[[Books, Any], Any]
    types: tuple[EventType, ...] = ()
    states: tuple[str, ...] = ()  # of all records, in the order they were written


def _nothing(_: Books) -> None:
    return None


def _remembered(made: Books) -> str:
    return made.remember()


def _doubted(made: Books) -> str:
    made.remember(confidence=0.9)
    return made.remember("Money is a float.", confidence=0.2)


def _contradicted(made: Books, **more: Any) -> str:
    about = {"subject": "staging", "attribute": "", **more}
    return made.remember("The request timeout is 45 seconds.", **about)


def _trusted(made: Books) -> None:
    about = {"subject": "staging", "attribute": "", "confidence": 0.9}
    made.remember("The request timeout is 30 seconds.", **about)


def _short_lived(made: Books) -> None:
    made.remember(ttl_s=60)
    made.remember("noted", subject="other", ttl_s=60)


def _end(memory_id: str) -> EndMemory:
    return parse(EndMemory, {"memory_id": memory_id, "reason": "it changed", "by": "noor"})


def _expire(made: Books, _: Any) -> None:
    made.now_ns += HOUR
    made.memory.expire_due()


def _read(made: Books, _: Any) -> None:
    asked = {"namespace": {"project": "quillbook"}, "run_id": RUN, "step_id": STEP}
    made.memory.read(parse(ReadMemory, asked))


def _work(made: Books, content: str) -> None:
    told = {"writer": "app", "memory_type": "working", "slot": "plan", "run_id": RUN}
    made.memory.write_json({**told, "content": content})


def _talk(made: Books) -> ConversationId:
    talk = made.talks.ensure("talk").id
    say(made.talks, talk, user("Refactor billing."), assistant("Done."))
    return talk


def _calling(made: Books) -> ConversationId:
    talk = made.talks.ensure("talk").id
    say(made.talks, talk, call("c1"))
    return talk


def _finding(first: int = 1) -> list[DetectionFinding]:
    seen = [
        Occurrence(number, NOW - HOUR + number * MINUTE, "step", f"{RUN}-{number:016x}")
        for number in range(first, first + 5)
    ]
    return [DetectionFinding(RULES[0], "tool", "run_tests", "refused", seen)]


def _task(made: Books) -> str:
    [one] = made.tasks.record(_finding())
    assert one.task is not None
    return one.task.task_id


def _interest(made: Books) -> Any:
    made.remember("bread", memory_type="interest", subject="baking")
    [found] = made.stories.interests()
    return found


def _judged(interest: Any) -> JudgedStory:
    return JudgedStory(_STORY, interest=interest.id, classifier="some/1", score=0.9, threshold=0.6)


_T = EventType
_WRITTEN, _ENDED = (_T.MEMORY_WRITTEN,), (_T.MEMORY_INVALIDATED,)
WRITES: dict[str, BookWrite] = {
    "remember": BookWrite(_nothing, lambda made, _: made.remember(), _WRITTEN, ("current",)),
    "remember in place of another": BookWrite(
        _remembered,
        lambda made, _: made.remember("Money is an int."),
        _WRITTEN,
        ("superseded", "current"),
    ),
    "remember the same again": BookWrite(
        _remembered, lambda made, _: made.remember(confidence=0.9), _WRITTEN
    ),
    "remember what is to be reviewed": BookWrite(
        lambda made: made.remember(confidence=0.9),
        lambda made, _: made.remember("Money is a float.", confidence=0.2),
        _WRITTEN,
        ("current", "review"),
    ),
    "remember what contradicts a record that is trusted more": BookWrite(
        _trusted,
        lambda made, _: _contradicted(made, confidence=0.5),
        _WRITTEN,
        ("current", "review"),
    ),
    "accept": BookWrite(
        _doubted,
        lambda made, one: made.memory.accept(AcceptMemory(memory_id=one, by="noor")),
        _WRITTEN,
        ("superseded", "current"),
    ),
    "invalidate": BookWrite(
        _remembered, lambda made, one: made.memory.invalidate(_end(one)), _ENDED
    ),
    "purge": BookWrite(_remembered, lambda made, one: made.memory.purge(_end(one)), _ENDED),
    "expire memory": BookWrite(_short_lived, _expire, (*_ENDED, *_ENDED)),
    "read memory": BookWrite(_remembered, _read),
    "overwrite a slot": BookWrite(
        lambda made: _work(made, "read"), lambda made, _: _work(made, "write"), _WRITTEN
    ),
    "begin a transcript": BookWrite(_nothing, lambda made, _: made.talks.ensure("talk")),
    "append two messages": BookWrite(
        _talk,
        lambda made, talk: say(made.talks, talk, user("Go on."), assistant("Yes.")),
        (_T.MESSAGE_INBOUND, _T.MESSAGE_OUTBOUND),
    ),
    "append a result that is clipped": BookWrite(
        _calling, lambda made, talk: say(made.talks, talk, result("c1", "x" * 100_000))
    ),
    "fold": BookWrite(
        _talk, lambda made, talk: made.talks.fold(talk, "Billing."), (_T.TRANSCRIPT_FOLDED,)
    ),
    "mark a message": BookWrite(
        _talk, lambda made, talk: made.talks.mark(talk, 0, "redacted", reason="a name")
    ),
    "begin a sub-agent": BookWrite(_talk, lambda made, talk: made.talks.spawn(talk, "researcher")),
    "end a sub-agent": BookWrite(
        lambda made: made.talks.spawn(_talk(made), "researcher").id,
        lambda made, one: made.talks.end(one),
    ),
    "open a task": BookWrite(_nothing, lambda made, _: made.tasks.record(_finding())),
    "count more on a task": BookWrite(_task, lambda made, _: made.tasks.record(_finding(6))),
    "decide about a task": BookWrite(
        _task,
        lambda made, one: made.tasks.decide(one, Decide(decision="approve"), by="noor"),
        (_T.TASK_DECIDED,),
    ),
    "keep a story with its note": BookWrite(
        _interest, lambda made, one: made.stories.record(_judged(one), one), _WRITTEN
    ),
}


def stored(made: Books) -> dict[str, list[str]]:
    """Return every row of the store, by table."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    with _reader(made) as connection:
        return {
            str(name): sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            for (name,) in connection.execute(tables).fetchall()
        }


def logged(made: Books) -> Sequence[str]:
    """Return the types of all events, in order."""
    with _reader(made) as connection:
        return [str(one.type) for one in read_events(connection, EventFilter(), limit=100)][::-1]


def states(made: Books) -> tuple[str, ...]:
    """Return the state of each record of memory, in the order they were written."""
    with _reader(made) as connection:
        found = connection.execute("SELECT state FROM memory ORDER BY id")
        return tuple(str(state) for (state,) in found)


def broken(made: Books) -> str | None:
    """Return where the chain of events is broken; None where it is whole."""
    with _reader(made) as connection:
        found = verify_events(connection).broken
    return None if found is None else f"event {found.seq} {found.problem}"


@contextmanager
def _reader(made: Books) -> Iterator[apsw.Connection]:
    connection = open_reader(made.folder)
    try:
        yield connection
    finally:
        connection.close()

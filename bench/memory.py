"""What reading and looking through 100,000 memories costs, and what a write does."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.figures import Figure, below, percentile
from hansard_compiler.compile.models import parse
from hansard_compiler.models.memory import ReadMemory, WriteMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.retention import Retention
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import transaction
from hansard_store.memory import supersession as memories
from hansard_store.memory.queries import MemoryFilter, facets, list_memories
from hansard_store.memory.retention import new_memory
from hansard_store.memory.retrieval import read_durable
from hansard_store.memory.service import MemoryService

_RECORDS = 100_000
_PROJECTS = 20
_TIMES = 30
_NOW = 1_780_000_000 * 10**9
_VOCABULARY = 6_000  # as often as in a language: the nth word a nth as often as the first
_SAID = ("total", "rounding", "invoice", "deploy", "branch", "cache", "queue", "ledger", "taxes")
_KINDS = ("fact", "preference", "constraint", "decision", "session_summary")


def run() -> list[Figure]:
    """Fill a store, then read as agents do, look as people do, and write."""
    with tempfile.TemporaryDirectory() as path:
        folder = DataFolder(Path(path))
        _fill(folder)
        return [*_reads(folder), *_lists(folder), *_writes(folder)]


def _fill(folder: DataFolder) -> None:
    connection = open_for_ingest(folder)
    retention = Retention.of(folder, RetentionMode.REDACTED_PAYLOADS)
    records = _records(random.Random(7))
    for _ in range(_RECORDS // 1000):
        with transaction(connection):
            for _ in range(1000):
                memories.write(
                    connection, new_memory(retention, next(records), now_ns=_NOW), now_ns=_NOW
                )
    connection.close()


def _words() -> tuple[list[str], list[float]]:
    """Return words and how often each is said; those asked for are among the frequent ones."""
    made = random.Random(5)
    words = ["".join(made.choices("bcdfglmnprst", k=4)) + made.choice(("al", "er", "ing", "ed"))
             for _ in range(_VOCABULARY)]  # fmt: skip
    for place, word in enumerate(_SAID):
        words[20 * (place + 1)] = word
    return words, [1 / (place + 1) for place in range(len(words))]


def _records(chance: random.Random) -> Iterator[WriteMemory]:
    number = 0
    words_of, often = _words()
    while True:
        number += 1
        words = chance.choices(words_of, often, k=25)
        yield parse(
            WriteMemory,
            {
                "writer": "app",
                "memory_type": chance.choice(_KINDS),
                "subject": f"{words[0]} {words[1]} {number // 4 * 4}",  # one in four is current
                "content": " ".join(words),
                "namespace": {"project": f"project {number % _PROJECTS}"},
                "confidence": 0.5 + chance.random() / 4,
                "tags": [words[2]],
                "run_id": f"{number % 5_000 + 1:032x}",
            },
        )


def _reads(folder: DataFolder) -> Iterator[Figure]:
    connection = open_reader(folder)
    asked = {
        "by a question": {"text": "how are the totals of an invoice rounded?"},
        "by a rare word": {"text": "taxes 31416"},
        "by kind and confidence": {"memory_types": ["decision"], "min_confidence": 0.7},
    }
    for what, wanted in asked.items():
        read = parse(ReadMemory, {"namespace": {"project": "project 7"}, "hidden": True, **wanted})
        names = read.namespace.parts

        def ask(read: ReadMemory = read, names: tuple[str, str, str] = names) -> object:
            return read_durable(connection, read, names, now_ns=_NOW)

        yield _figure(f"memory: read {what}", ask, bar=30)
    connection.close()


def _lists(folder: DataFolder) -> Iterator[Figure]:
    connection = open_reader(folder)
    asked = {
        "search for two words": MemoryFilter(text="total rounding"),
        "search for a word nobody said": MemoryFilter(text="zeppelin"),
        "search for the start of a word": MemoryFilter(text="invo*"),
        "one project": MemoryFilter(project="project 3"),
        "a tag": MemoryFilter(tag="cache"),
        "what one run wrote": MemoryFilter(run=bytes.fromhex(f"{77:032x}"), state="all"),
        "no record is so sure": MemoryFilter(min_confidence=0.99),
    }
    for what, wanted in asked.items():

        def ask(wanted: MemoryFilter = wanted) -> object:
            return list_memories(connection, wanted, now_ns=_NOW)

        yield _figure(f"memory: {what}", ask, bar=30)
    counted = _figure("memory: counts beside the list", lambda: facets(connection, now_ns=_NOW))
    yield counted
    connection.close()


def _writes(folder: DataFolder) -> Iterator[Figure]:
    book = MemoryService(folder)
    records = _records(random.Random(8))
    yield _figure("memory: write, with its event, safe from a power cut",
                  lambda: book.write(next(records)))  # fmt: skip
    read = parse(ReadMemory, {"namespace": {"project": "project 7"}, "text": "invoice totals"})
    yield _figure("memory: read, and recorded as read", lambda: book.read(read))
    book.close()


def _figure(what: str, call: Callable[[], object], *, bar: float | None = None) -> Figure:
    took = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    note = f"p95 {percentile(took, 0.95):.2f} ms; of {_RECORDS:,}"
    if bar is None:
        return Figure(what, median(took), "ms", note=note)
    return below(what, median(took), "ms", bar=bar, note=note)

"""Maintenance of memory: precision and recall on labelled sets, and what 10,000 records cost."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.figures import Figure, below
from bench.quality import supersession

_RECORDS: Final = 10_000
_PROJECTS: Final = 20
_CORRECTIONS: Final = 200
_FIRST_S, _AGAIN_S, _MIB = 10, 1, 250
_NOW: Final = 1_780_000_000 * 10**9
# In a process of its own, so that what it takes is its own; the store is made before.
_CHILD: Final = "from bench.maintenance import maintain_once; maintain_once()"


def run() -> list[Figure]:
    """Print quality, then cost."""
    return [*supersession.figures(), *_cost()]


def _cost() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as path:
        fill(Path(path))
        first, again = _in_child(path), _in_child(path)
    note = (
        f"{first['records']:,} records, {first['pairs']:,} pairs in "
        f"{first['prefilter_ms']:,.0f} ms of SQL, {first['calls']:,} calls, "
        f"{first['superseded']:,} superseded, of which {first['linked']:,} by corrections, "
        f"{first['tasks']:,} tasks, "
        f"{first['left']:,} pairs left; {first['cpu_s']:.1f} s of CPU"
    )
    yield below("maintenance of 10,000 records", first["took_s"], "s", bar=_FIRST_S, note=note)
    note = f"{again['calls']:,} calls, {again['pairs']:,} pairs; {again['cpu_s']:.2f} s of CPU"
    yield below("again, with nothing new", again["took_s"], "s", bar=_AGAIN_S, note=note)
    yield below("peak memory of the process", first["peak_mib"], "MiB", bar=_MIB)


def _in_child(path: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, path], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def maintain_once() -> None:
    """Maintain the store that the last argument names, and print what it took as JSON."""
    import resource

    from hansard_collector.judges import JudgeSettings, judges_from
    from hansard_collector.maintenance import Maintainer
    from hansard_store.database.data_folder import DataFolder
    from hansard_store.memory.maintenance.service import MaintenanceService

    with closing(MaintenanceService(DataFolder(Path(sys.argv[-1])), clock=lambda: _NOW)) as book:
        began, used = time.perf_counter(), time.process_time()
        result = Maintainer(book, judges_from(JudgeSettings())).run()
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - used
    found = result.contradictions
    assert found is not None
    told = {
        "took_s": took_s,
        "cpu_s": cpu_s,
        "linked": len(result.corrections.applied) if result.corrections else 0,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "records": found.entries,
        "pairs": found.pairs,
        "prefilter_ms": found.prefilter_ms,
        "calls": found.calls,
        "left": found.left,
        "superseded": len(result.applied),
        "tasks": len(result.proposed),
    }
    print(json.dumps(told))


def fill(path: Path, *, records: int = _RECORDS, corrections: int = _CORRECTIONS) -> None:
    """Write a store of records of 20 projects, with some contradictions and corrections."""
    from hansard_compiler.compile.models import parse
    from hansard_compiler.models.memory import WriteMemory
    from hansard_compiler.retention_modes import RetentionMode
    from hansard_store.content.retention import Retention
    from hansard_store.database.connections import open_for_ingest
    from hansard_store.database.data_folder import DataFolder
    from hansard_store.database.transactions import transaction
    from hansard_store.memory import supersession as memories
    from hansard_store.memory.retention import new_memory

    folder = DataFolder(path)
    connection = open_for_ingest(folder)
    retention = Retention.of(folder, RetentionMode.REDACTED_PAYLOADS)
    told = [_record(number) for number in range(records - corrections)]
    told += [_correction(number) for number in range(corrections)]
    with transaction(connection):
        for at, one in enumerate(told):
            now_ns = _NOW - (len(told) - at) * 10**9
            new = new_memory(retention, parse(WriteMemory, one), now_ns=now_ns)
            memories.write(connection, new, now_ns=now_ns)
    connection.close()


_NOUNS: Final = ("service", "queue", "report", "customer", "invoice", "sensor", "room", "job")
_FACTS: Final = (
    "The {what} {name} is owned by team {a}.",
    "The {what} {name} listens on port {n}.",
    "The {what} {name} is checked every {n} minutes by the team {a}.",
    "{a} asked in May how the {what} {name} was set up and got a page of notes.",
    "The {what} {name} was moved from rack {n} to the second hall by {a}.",
)
_NAMES: Final = ("Kestrel", "Osprey", "Heron", "Merlin", "Plover", "Egret", "Avocet", "Dunlin")


_WORDS: Final = [
    begin + middle + end
    for begin in ("bar", "cal", "dor", "fen", "gil", "hos", "jun", "kel", "lam", "mor")
    for middle in ("a", "e", "i", "o", "u", "an", "or", "ist", "el", "um")
    for end in ("t", "nd", "rk", "sh", "pel", "don", "ver", "ck", "lin", "mus")
]


def _record(number: int) -> dict[str, Any]:
    """Return a record; of three, one shares its subject with two others and two stand alone."""
    thing = number // 9 if number % 3 == 0 else 10_000 + number
    name = f"{_NAMES[thing % 8]}-{thing}"
    what = _NOUNS[thing // 3 % 8]
    fact = 0 if number % 9 in (0, 3) and thing % 4 == 0 else number // 3 % 5
    text = _FACTS[fact].format(
        what=what, name=name, a=_NAMES[number // 5 % 8], n=1000 + number % 89
    )
    if number % 3:
        chance = random.Random(number)
        text += f" Its notes speak of {' '.join(chance.choices(_WORDS, k=6))}."
    return {**_base(number), "memory_type": "fact", "subject": f"{what} {name}", "content": text}


def _correction(number: int) -> dict[str, Any]:
    """Return a correction of a record that stands alone."""
    about = 3 * (7 * number) + 1
    told = _record(about)
    return {
        **told,
        "memory_type": "correction",
        "attribute": f"correction {number}",
        "tags": ["correction"],
        "content": f"Correction: {told['content']} This is as of June.",
    }


def _base(number: int) -> dict[str, Any]:
    return {"writer": "app", "namespace": {"project": f"project {number // 9 % _PROJECTS}"}}

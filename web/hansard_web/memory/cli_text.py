"""Records of memory as the terminal shows them."""

from __future__ import annotations

import json
from typing import Any

from hansard_store.ids import short_id
from hansard_store.principals.model import is_same, person_text
from hansard_web.api.values import Body
from hansard_web.cli.base import print_json
from hansard_web.cli.tables import Column, print_facts

COLUMNS = (
    Column("MEMORY"),
    Column("TYPE"),
    Column("OF"),
    Column("SUBJECT", may_cut=True),
    Column("STATE"),
    Column("CONFIDENCE", is_figure=True),
    Column("READS", is_figure=True),
    Column("WRITTEN BY"),
    Column("SOURCE RUN"),
)


def cells(one: Body) -> tuple[str, ...]:
    return (
        short_id(one["memory_id"]),
        one["memory_type"],
        _place(one),
        one["subject"],
        one["state"],
        f"{one['confidence']:.2f}",
        f"{one['reads']:,}",
        writer_of(one),
        _source(one)[:8],
    )


def _place(one: Body) -> str:
    if one["run_id"]:
        return f"run {one['run_id'][:8]}"
    return " ".join(f"{part}:{name}" for part, name in one["namespace"].items())


def writer_of(one: Body) -> str:
    """Return as what it was written, the name that was given, and which principal sent it."""
    name, sender = one["written_by"], one["written_principal"]
    said = f"{one['writer']}: {person_text(name, one['written_method'])}" if name else one["writer"]
    is_told = sender is None or is_same(sender, name)
    return str(said) if is_told else f"{said}, sent by {sender}"


def _source(one: Body) -> str:
    return str(one["source_run_id"] or "")


def print_changed(one: Body, *, as_json: bool) -> None:
    if as_json:
        print_json({"memory": one})
    else:
        print_record(one)


def print_record(one: Body) -> None:
    ended = one["ended"]
    print_facts(
        [
            ("memory", one["memory_id"]),
            ("type", one["memory_type"]),
            ("of", _place(one)),
            ("subject", one["subject"]),
            ("attribute", one["attribute"]),
            ("state", one["state"]),
            ("version", str(one["version"])),
            ("confidence", f"{one['confidence']:.2f}"),
            ("fresh as of", one["freshness_at"]),
            ("expires", one["expires_at"] or "never"),
            ("tags", ", ".join(one["tags"])),
            ("written by", writer_of(one)),
            ("approval", one["approval_id"] or ""),
            ("source run", _source(one) + (" (deleted)" if one["source_is_gone"] else "")),
            ("source steps", ", ".join(one["source_step_ids"])),
            ("superseded by", one["superseded_by"] or ""),
            ("contradicts", one["contests"] or ""),
            (
                "ended",
                f"{person_text(ended['by'], ended['method'])}, {ended['at']}: {ended['reason']}"
                if ended
                else "",
            ),
            ("content", text_of(one["content"])),
        ]
    )


def text_of(content: Any) -> str:
    if content is None:
        return "(purged)"
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def access_line(one: Body) -> str:
    where = one["step_id"] or one["run_id"] or "no run"
    return f"{one['at'][:19]} {one['kind']} {where} {one['agent'] or ''}".rstrip()


def use_line(one: Body) -> str:
    return f"{one['at'][:19]} {one['decision']} ({one['reason']}) {one['step_id']}"


def supersession_line(one: Body) -> str:
    """Return who or what let one record supersede another, why, and whether that was taken back."""
    score = "" if one["score"] is None else f", score {one['score']:.2f}"
    decided, undone = one["decision"], one["undone"]
    person = f", {one['state']} by {_person(decided)}" if decided else ""
    taken_back = f"; taken back by {_person(undone)}, {undone['at'][:19]}" if undone else ""
    return (
        f"  {one['at'][:19]} {(one['older'] or '?')[:8]} by {(one['newer'] or '?')[:8]}, "
        f"{one['cause']}, {one['state']}: {one['rationale']} ({one['judge']}{score}{person})"
        f"{taken_back}"
    )


def _person(decision: Body) -> str:
    return person_text(decision["by"], decision["method"])

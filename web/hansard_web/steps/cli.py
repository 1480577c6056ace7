"""`hansard steps`: one step, with what it means or as it came in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import apsw
import click
import orjson

from hansard_collector.derivation.stored_span import read_step
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import get_step
from hansard_web.cli.base import (
    CommandGroup,
    Failed,
    json_option,
    print_json,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import lent_readers, reading
from hansard_web.cli.tables import print_facts, print_lines
from hansard_web.context.bodies import native_compilation
from hansard_web.context.compilation_bodies import WholeCompilation, whole_body
from hansard_web.receipts.cli import print_one_receipt, print_receipts, refuse_unknown
from hansard_web.runs.export import open_raw
from hansard_web.steps.bodies import GateOutcome, StepBody, step_body
from hansard_web.ui import format as fmt

_SHOWN = 2_000  # characters of one message or value; --json has all


@click.group(cls=CommandGroup)
def steps() -> None:
    """Steps: show one, whole or as it came in; say what it knew, and why."""


@steps.command()
@click.argument("step_id")
@setting_options("data")
@click.option("--raw", is_flag=True, help="The span as it came in, as OTLP/JSON.")
@json_option
def show(*, step_id: str, data: str | None, raw: bool, as_json: bool) -> None:
    """Show a step: what was asked and answered, tokens, attributes.

    STEP_ID is <run>-<span>, or a unique beginning of it.

    Example: hansard steps show 4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7
    """
    if raw:
        _print_raw(step_id, data=data)
        return
    with reading(data) as connection:
        body = step_body(connection, step_id, now_ns=time.time_ns())
    if as_json:
        print_json(body)
        return
    print_facts(_facts(body))
    print_lines(_content(body))


@steps.command()
@click.argument("step_id")
@setting_options("data")
@click.option("--item", help="Only this item, with the terms of its score.")
@click.option("--decision", help="Only these: include, exclude, compress, redact.")
@json_option
def why(
    *, step_id: str, data: str | None, item: str | None, decision: str | None, as_json: bool
) -> None:
    """Say for every candidate why it was in the prompt of a step, or was not.

    STEP_ID is a compile, the step around it or the model call that used it.

    Example: hansard steps why 4bf92f35-00f0 --decision exclude
    """
    with reading(data) as connection:
        body = _compile_of(connection, step_id, now_ns=time.time_ns())
    body["receipts"] = [
        one
        for one in body["receipts"]
        if item in (None, one["item_id"]) and decision in (None, one["decision"])
    ]
    if not body["receipts"]:
        refuse_unknown(decision)
    if as_json:
        print_json(body)
    elif item is None:
        _print_compile(body)
    for one in body["receipts"] if item is not None and not as_json else ():
        print_one_receipt(one)
    if item is not None and not body["receipts"]:
        raise Failed(f"item {item!r} was no candidate of this compile, or not decided so")


def _compile_of(connection: apsw.Connection, step_id: str, *, now_ns: int) -> WholeCompilation:
    step = get_step(connection, step_id, now_ns=now_ns)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    found = native_compilation(connection, step, read_step(connection, step.id), run=run.id)
    if found is None:
        raise Failed(
            f"step {step.step_id} has no compile, so there are no receipts; what its context was "
            "can only be derived: `hansard steps show --json`, under context"
        )
    return whole_body(connection, found, now_ns=now_ns)


def _print_compile(body: WholeCompilation) -> None:
    budget, items = body["budget"], body["items"]
    used, available = budget["used"], budget["available"]
    known = used is not None and available is not None
    print_facts(
        [
            ("compile", body["compilation_id"]),
            ("model", " ".join(part for part in (body["provider"], body["model"]) if part)),
            ("budget", f"{used:,} of {available:,} tokens" if known else ""),
            ("items", f"{items['total']:,}, {items['excluded']:,} of them left out"),
            ("notes", "; ".join(body["notes"])),
        ]
    )
    click.echo()
    print_receipts(body["receipts"])


def _print_raw(step_id: str, *, data: str | None) -> None:
    with lent_readers(data) as readers:
        write_bytes(open_raw(readers, step_id), None)
    click.echo()


def _facts(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    call, tool, error = body["call"] or {}, body["tool"] or {}, body["error"] or {}
    tokens = body["tokens"] or {}
    known = ", ".join(f"{name} {value:,}" for name, value in tokens.items() if value is not None)
    length = body["duration_ms"]
    return [
        ("step", body["step_id"]),
        ("name", body["span_name"]),
        ("role", body["role"]),
        ("status", body["status"]),
        ("error", " ".join(str(v) for v in (error.get("type"), error.get("message")) if v)),
        ("started", body["started_at"] or ""),
        ("took", "" if length is None else fmt.milliseconds(length)),
        ("dialect", body["dialect"] or ""),
        ("model", call.get("response_model") or call.get("request_model") or ""),
        ("finish reason", call.get("finish_reason") or ""),
        ("tokens", known),
        ("tool", tool.get("name") or ""),
        ("gate", _gate(body["gate"])),
        ("service", str(body["resource"]["attributes"].get("service.name", ""))),
    ]


def _gate(gate: GateOutcome | None) -> str:
    if gate is None:
        return ""
    states = " → ".join(gate["states"])
    states += "".join(f"; note by {one['by']}: {one['note']}" for one in gate["notes"])
    later = f"; see draft {gate['next_draft']}" if gate["next_draft"] else ""
    return f"{states}{later}" + (f", {gate['next_step_id']}" if gate["next_step_id"] else "")


def _content(body: StepBody) -> Iterator[str]:
    """Yield what was said and done, a heading before each."""
    call, tool = body["call"], body["tool"]
    if call is not None:
        for message in (*call["input"], *call["output"]):
            yield from ("", message["role"])
            for part in message["parts"]:
                yield _short(part.get("text") or part)
    if tool is not None:
        yield from ("", "arguments", _short(tool["arguments"]), "", "result")
        yield _short(tool["result"])
    if body["attributes"]:
        yield from ("", "attributes")
        for key, value in body["attributes"].items():
            yield f"  {key} = {fmt.shorten(_text(value), 120)}"


def _short(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()

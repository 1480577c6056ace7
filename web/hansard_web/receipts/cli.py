"""`hansard receipts`, and what `hansard steps why` prints: what went in or not, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_args

import click

from hansard_compiler.compile.models import Decision
from hansard_store.compilations.receipts import FoundReceipt, list_receipts
from hansard_web.api.queries import limit_of
from hansard_web.cli.base import (
    CommandGroup,
    Misused,
    filter_options,
    page_options,
    print_page,
    setting_options,
)
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.receipts.bodies import (
    FoundReceiptBody,
    ReceiptBody,
    WholeReceipt,
    found_body,
    receipt_filter,
)

_FILTERS = {
    "item": "Id of an item.",
    "source": "Where it came from: file, docs/a.md or 'file docs/a.md'.",
    "reason": "Reason code: over_budget, duplicate, policy_denied, …",
    "decision": "include, exclude, compress or redact.",
    "pass": "Pass that decided: budget, policy, dedupe, …",
    "rule": "Id of a policy rule.",
    "kind": "Kind of item: file, memory, tool_result, …",
    "run": "Run, or a unique beginning of its id.",
    "since": "Compiled at or after: RFC 3339 or nanoseconds.",
    "until": "Compiled before.",
}


@click.group(cls=CommandGroup)
def receipts() -> None:
    """Receipts: what went into prompts and what did not, and why."""


@receipts.command("list")
@setting_options("data")
@filter_options(_FILTERS, renamed={"pass": "pass_"})
@page_options
def list_(
    *, data: str | None, limit: str, cursor: str | None, as_json: bool, **filters: str | None
) -> None:
    """List receipts, newest compile first; all filters must be met.

    Every run in which a file did not fit:

    Example: hansard receipts list --source src/a.py --reason over_budget
    """
    with reading(data) as connection:
        filtered_by = receipt_filter(**filters)
        page = list_receipts(connection, filtered_by, limit=limit_of(limit), cursor=cursor)
    if not page.items:
        refuse_unknown(filters["decision"])
    print_page(page, found_body, _print_list, as_json=as_json)


def _print_list(items: Sequence[FoundReceipt]) -> None:
    print_records(map(found_body, items), {**_WHERE, **_CELLS})


def refuse_unknown(decision: str | None) -> None:
    """Say that a word that found nothing is no decision; one of a later version finds its own."""
    if decision not in (None, *get_args(Decision)):
        raise Misused(f"{decision!r} is no decision; there are {', '.join(get_args(Decision))}")


def print_receipts(bodies: Iterable[ReceiptBody]) -> None:
    """Print what one compile did with its candidates, a line each."""
    print_records(bodies, _CELLS)


def _why(body: ReceiptBody) -> str:
    """Return the reason in words, and which rule or other item it is about."""
    words = body["reason_text"] or body["reason"]
    about = [*body["rule_ids"], *([body["related_item_id"]] if body["related_item_id"] else ())]
    return f"{words} ({', '.join(about)})" if about else words


def _tokens(body: ReceiptBody) -> str:
    before, after = body["tokens_before"], body["tokens_after"]
    known = "?" if before is None else f"{before:,}"
    return known if after is None or after == before else f"{known} → {after:,}"


def _missed(body: ReceiptBody) -> str:
    tokens, score = body["missed_by_tokens"], body["missed_by_score"]
    parts = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*parts, *([f"{score} points"] if score and score != "0" else ())])


_WHERE: Final[Mapping[Column, Callable[[FoundReceiptBody], str]]] = {
    Column("RUN"): lambda body: body["run_id"][:8],
    Column("COMPILED (UTC)"): lambda body: (body["started_at"] or "")[:19].replace("T", " "),
}
_CELLS: Final[Mapping[Column, Callable[[ReceiptBody], str]]] = {
    Column("ITEM", may_cut=True): lambda body: body["item_id"],
    Column("DECISION"): lambda body: body["decision"],
    Column("PASS"): lambda body: body["pass"] or "",
    Column("WHY", may_cut=True): _why,
    Column("TOKENS", is_figure=True): _tokens,
    Column("SCORE", is_figure=True): lambda body: body["score"] or "",
    Column("MISSED BY", is_figure=True): _missed,
}


def print_one_receipt(body: WholeReceipt) -> None:
    """Print everything about one receipt, its score term by term."""
    print_facts(
        [
            ("item", body["item_id"]),
            ("kind", body["kind"] or ""),
            ("source", body["source"] or ""),
            ("decision", body["decision"]),
            ("pass", body["pass"] or ""),
            ("reason", f"{body['reason']}: {_why(body)}"),
            ("section", body["section"] or ""),
            ("tokens", _tokens(body)),
            ("score", body["score"] or ""),
            ("missed by", _missed(body)),
            ("notes", body["notes"] or ""),
            ("original", body["original_ref"] or ""),
            ("sent", body["final_ref"] or ""),
        ]
    )
    if body["score_breakdown"]:
        print_lines(_terms(body["score_breakdown"]))


def _terms(breakdown: Mapping[str, Any]) -> Iterable[str]:
    """Yield the addends of a score: value in millionths, weight in thousandths."""
    for name, term in breakdown.items():
        if isinstance(term, dict) and all(type(number) is int for number in term.values()):
            value, weight, points = (term.get(key, 0) for key in ("value", "weight", "points"))
            yield f"  {name:<16} {value / 1e6:>9.6f} × {weight / 1e3:>6.3f} = {points / 1e9:>13.9f}"

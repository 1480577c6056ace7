"""What `hansard replay` prints."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hansard_compiler.calls import Json
from hansard_web.api.values import Body
from hansard_web.cli.tables import print_facts, print_lines
from hansard_web.replay.descriptions import BASES
from hansard_web.ui import format as fmt
from hansard_web.ui.format import printable


def print_preview(body: Body, *, err: bool = False) -> None:
    """Print what would be sent."""
    cost, refusal = body["cost"], body["refusal"]
    request = body["request"]
    facts = [
        ("to", f"{body['provider']} {body['model']} ({body['address'] or 'no network'})"),
        ("recorded at", body["recorded_address"] or _unknown(body["address"])),
        ("request", f"{request['size']:,} bytes, {request['hash']}"),
        ("", "the recorded bytes" if request["same"] else "other than the recorded one"),
        ("input", f"{body['tokens']['estimated_input']:,} tokens "
                  f"({body['tokens']['estimated_by']})"),
        ("cost", _cost(cost)),
        ("made of", BASES[body["basis"]]),
        *(("at the provider", one["text"]) for one in body["provider_side_effects"]),
        ("approval", "needed before it is sent" if body["needs_approval"] else ""),
        ("cannot be sent", refusal["message"] if refusal else ""),
    ]  # fmt: skip
    if err:
        for name, value in facts:
            if value:
                click.echo(printable(f"{name:>15}  {value}"), err=True)
        return
    print_facts([(name, value) for name, value in facts if value])
    changed = _byte_diff(request["diff"])
    print_lines([*changed, *_compile(body.get("compile")), *_noted(body["notes"], body["omitted"])])


def _unknown(address: str) -> str:
    return "not recorded" if address.startswith("http") else ""


def _byte_diff(diff: Json | None) -> Iterator[str]:
    """Yield how the bytes differ from the recorded ones."""
    if diff is None or not diff["unified"]:
        return
    yield "the bytes, recorded (-) and to be sent (+):"
    yield from (f"  {line}" for line in diff["unified"].splitlines())
    if diff["is_unified_truncated"]:
        yield "  … cut; --json has the changes by path"


def print_replay(body: Body) -> None:
    """Print what became of a replay."""
    took = body["duration_ms"]
    print_facts(
        [
            ("replay", body["replay_id"]),
            ("state", " ".join(one for one in (body["state"], body["reason_text"] or "") if one)),
            ("of", body["source"]["step_id"]),
            ("run", body["run_id"] or ""),
            ("took", "" if took is None else fmt.milliseconds(took)),
            ("request", _request(body)),
        ]
    )
    found = body["comparison"] or {}
    changed = _compile(found.get("compile")) if body["mode"] == "mutated" else ()
    made = [f"changed: {one}" for one in body["changes"]]
    yours = [body["user_notes"]] if body["user_notes"] else []
    print_lines([*made, *changed, *_said(body), *_noted(body["labels"], body["notes"], yours)])


def _cost(cost: Json | None) -> str:
    if cost is None:
        return "unknown: the price list does not have the model"
    if cost["source"] is None:
        return "nothing is paid"
    return f"about ${cost['usd']:.6f} for {cost['times']} ({cost['source']})"


def _compile(found: Json | None) -> Iterator[str]:
    if found is None:
        return
    changed = [one for one in found["items"] if one["change"] != "same"]
    yield f"{fmt.plural(len(changed), 'item')} of {len(found['items'])} decided otherwise"
    for one in changed:
        because = (one.get("cause") or {}).get("detail") or ""
        told = f"  {one['name']}: {one['change']}{f' ({because})' if because else ''}"
        yield told if one["name"] == one["item_id"] else f"{told} [{one['item_id']}]"


def _request(body: Body) -> str:
    if body["request_hash"] is None:
        return ""
    same = "the recorded one" if body["same_request"] else "another than the recorded one"
    return f"{body['request_hash']}, {same}"


def _said(body: Body) -> Iterator[str]:
    if body["error"]:
        yield f"{body['error']['code']}: {body['error']['message']}"
    if body["divergence"]:
        yield f"parted at turn {body['divergence']['turn']}: {body['divergence']['sentence']}"
    yield from _live(body)
    output = (body["comparison"] or {}).get("output")
    if output is not None and body["step_ids"]:
        same = output["is_empty"]
        yield "the answer is the recorded one" if same else f"answer: {_words(output['text'])}"
    spread = body["spread"]
    if spread:
        yield f"{spread['answers']} answers, {spread['different']} different"
        for group in spread["groups"]:
            calls = ", ".join(one["name"] for one in group["tool_calls"])
            words = fmt.shorten(group["text"] or calls, 200)
            yield f"  {group['count']} × {words}"


def _live(body: Body) -> Iterator[str]:
    """Yield what was done past the divergence, and what it takes to go on."""
    live, ask = body["live"], body["continuation"]
    if live is not None:
        yield f"live: {fmt.plural(live['turns'], 'turn')}, ${live['spent_usd']:.6f}"
    if ask is not None and body["state"] == "waiting" and ask.get("needs") == "approval":
        approval_id = ask.get("approval_id")
        if approval_id:
            then = f"hansard replay {body['short_id']} --continue"
            yield f"needs approval {approval_id}, then: {then}"
            return
    for call in [] if ask is None else ask["calls"]:
        held = f", {call['held_because']}" if call["held_because"] else ""
        yield f"  {call['call_id']} {call['name']}: {call['state']}{held}"
    if ask is not None and body["state"] in ("diverged", "waiting"):
        needed = [one["call_id"] for one in ask["calls"] if one["state"] in ("needed", "held")]
        given = "".join(f" --result {one}=…" for one in needed)
        yield f"to go on live: hansard replay {body['short_id']} --continue{given}"


def _words(ops: list[Json]) -> str:
    """Return a text with what was said only before, and only now, in brackets of their own."""
    marks = {"del": ("[-", "-]"), "ins": ("{+", "+}")}
    return "".join(
        f"{marks.get(one['op'], ('', ''))[0]}{one['text']}{marks.get(one['op'], ('', ''))[1]}"
        for one in ops
    )


def _noted(*lists: list[str]) -> Iterator[str]:
    for notes in lists:
        for note in notes:
            yield f"note: {note}"

"""`hansard replay`: a model call again, exactly or with changes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from hansard_collector.transfer import import_files
from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.replay.errors import NotReplayable
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import data_folder
from hansard_web.app.readers import Readers
from hansard_web.cli.base import (
    Command,
    Misused,
    confirm,
    json_option,
    print_json,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import use_store
from hansard_web.cli.tables import print_facts, print_lines
from hansard_web.policy.service import read_file
from hansard_web.replay.descriptions import BASES
from hansard_web.replay.engine import Replays
from hansard_web.replay.export import step_of_file
from hansard_web.replay.json import ReplayBody, replay_body
from hansard_web.replay.preview import Preview
from hansard_web.replay.request import MOST_LIVE, GoOn, Mode, ReplayInput, ResultInput
from hansard_web.replay.service import replaying
from hansard_web.ui import format as fmt
from hansard_web.ui.format import printable

# What `hansard replay` prints.


def print_preview(body: Preview, *, err: bool = False) -> None:
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


def print_replay(body: ReplayBody) -> None:
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
    print_lines(
        [*made, *changed, *_result_lines(body), *_noted(body["labels"], body["notes"], yours)]
    )


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
        line = f"  {one['name']}: {one['change']}{f' ({because})' if because else ''}"
        yield line if one["name"] == one["item_id"] else f"{line} [{one['item_id']}]"


def _request(body: ReplayBody) -> str:
    if body["request_hash"] is None:
        return ""
    same = "the recorded one" if body["same_request"] else "another than the recorded one"
    return f"{body['request_hash']}, {same}"


def _result_lines(body: ReplayBody) -> Iterator[str]:
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


def _live(body: ReplayBody) -> Iterator[str]:
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
        held = f", {call['block_reason']}" if call["block_reason"] else ""
        yield f"  {call['call_id']} {call['name']}: {call['state']}{held}"
    if ask is not None and body["state"] in ("diverged", "waiting"):
        needed = [one["call_id"] for one in ask["calls"] if one["state"] in ("needed", "blocked")]
        options = "".join(f" --result {one}=…" for one in needed)
        yield f"to go on live: hansard replay {body['short_id']} --continue{options}"


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


# The changes of `hansard replay`, as options.

_SET: Final = ("model", "provider", "temperature", "top_p", "max_output_tokens", "seed", "effort")
_NUMBERS: Final = {"temperature": float, "top_p": float, "max_output_tokens": int, "seed": int}
_OPTIONS: Final = (
    click.option("--set", "sets", multiple=True, metavar="NAME=VALUE",
                 help=f"{', '.join(_SET)}; several times."),
    click.option("--budget", type=int, help="Tokens to compile for."),
    click.option("--reserve", type=int, help="Tokens of it that stay free for the answer."),
    click.option("--weights", multiple=True, metavar="TERM=WEIGHT",
                 help="Weight of a score's term: relevance, freshness, trust …"),
    click.option("--rules", multiple=True, metavar="FILE", help="Policy in place of the compile's: "
                 "files of rules, or shipped:NAME."),
    click.option("--remove", multiple=True, metavar="ITEM", help="Leave out an item."),
    click.option("--remove-source", multiple=True, metavar="SOURCE",
                 help="Leave out all items of a source: file, docs/a.md, 'file docs/a.md'."),
    click.option("--remove-memory", multiple=True, metavar="ID",
                 help="Leave out a memory; `all` for all of them."),
    click.option("--remove-tool", multiple=True, metavar="NAME", help="Do not offer a tool."),
    click.option("--edit", multiple=True, metavar="ITEM=TEXT", help="Give an item other content."),
    click.option("--message", multiple=True, metavar="N=TEXT",
                 help="Give message N, from 0, other words."),
    click.option("--say", multiple=True, metavar="TEXT", help="Add a message of the user."),
    click.option("--change", multiple=True, metavar="JSON",
                 help='Any change as JSON, in this order: \'{"op": "remove_item", …}\'.'),
)  # fmt: skip


def change_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each change."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def changes_from(options: Mapping[str, Any]) -> list[Json]:
    """Return the changes that the options name, in the order of the list."""
    changes = _sets(options["sets"])
    budget = {"token_budget": options["budget"], "response_reserve": options["reserve"]}
    known = {name: value for name, value in budget.items() if value is not None}
    if known:
        changes.append({"op": "set_budget", **known})
    if options["weights"]:
        weights = dict(_pair(one, "--weights") for one in options["weights"])
        numbers = {name: _number(name, value, float) for name, value in weights.items()}
        changes.append({"op": "set_weights", "weights": numbers})
    if options["rules"]:
        changes.append({"op": "set_policy", "rules": _rules(options["rules"])})
    for name, key in (
        ("remove", "item_id"), ("remove_source", "source"), ("remove_memory", "memory_id"),
        ("remove_tool", "name"),
    ):  # fmt: skip
        op = "remove_item" if name == "remove" else name
        changes += [{"op": op, key: None if one == "all" else one} for one in options[name]]
    for one in options["edit"]:
        item_id, content = _pair(one, "--edit")
        changes.append({"op": "edit_item", "item_id": item_id, "content": content})
    for one in options["message"]:
        number, words = _pair(one, "--message")
        position = _number("--message", number, int)
        changes.append({"op": "edit_message", "position": position, "text": words})
    changes += [{"op": "add_message", "role": "user", "text": one} for one in options["say"]]
    return [*changes, *(_json(one) for one in options["change"])]


def _sets(texts: Sequence[str]) -> list[Json]:
    changes: list[Json] = []
    for one in texts:
        name, value = _pair(one, "--set")
        if name not in _SET:
            raise ConfigError(f"--set {name}: there are {', '.join(_SET)}")
        if name in ("model", "provider"):
            changes.append({"op": f"set_{name}", name: value})
        else:
            number = _number(name, value, _NUMBERS.get(name, str))
            changes.append({"op": "set_sampling", name: number})
    return changes


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"{option} {text!r}: expected NAME=VALUE")
    return name, value


def _number(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is no number") from None


def _rules(files: Sequence[str]) -> list[Json]:
    """Return the rules of files, as they stand there."""
    documents = [read_file(Path(name)).document for name in files]
    return [rule for document in documents for rule in document.get("rules", [])]


def _json(text: str) -> Json:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--change is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError("--change: expected a JSON object")
    return found


_WAIT_S: Final = 3_600.0
_SAME, _DIFFERENT, _REFUSED, _WAITS = 0, 1, 2, 3


@click.command(cls=Command)
@click.argument("step")
@change_options
@click.option("--exact", is_flag=True, help="Refuse anything but the very same bytes.")
@click.option("--forward", is_flag=True, help="Go on through the later turns of the run.")
@click.option("--live", is_flag=True, help="A fork goes on past the first divergence, and sends.")
@click.option(
    "--continue", "goes_on", is_flag=True, help="STEP is a replay that stopped: have it go on live."
)
@click.option(
    "--result",
    "results",
    multiple=True,
    metavar="CALL=TEXT",
    help="With --continue: what a tool call came to, as text or JSON; several times.",
)
@click.option("--max-turns", type=click.IntRange(1, MOST_LIVE), help="Live turns at most.")
@click.option("--max-usd", type=click.FloatRange(0, 1_000), help="What they may cost at most.")
@click.option("--recorded", is_flag=True, help="Answer from the recording; nothing is sent.")
@click.option("--n", "n", default=1, show_default=True, help="How often to ask.")
@click.option("--notes", help="Why; kept with the replay.")
@click.option("--script", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Lines of the scripted model.")  # fmt: skip
@click.option(
    "--allow-other-address", is_flag=True, help="To the address configured here, if it is another."
)
@click.option(
    "--allow-provider-side-effects",
    is_flag=True,
    help="Tools that the provider runs, and state that it keeps: wait for an approval and send.",
)
@click.option("--preview", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--check", is_flag=True, help="Exit 1 unless the answer is the recorded one.")
@click.option("--yes", is_flag=True, help="Send without asking.")
@setting_options("data", "config", "retention", "model_server", "policy")
@json_option
def replay(*, step: str, as_json: bool, **line: Any) -> None:
    """Make a model call again: exactly, or with changes.

    STEP is a step, a unique beginning of its id, or a file of `hansard export --recipe`. Changes
    apply in the order of this list; `--change` takes any of them as JSON, in its own order. A
    replay that asks a provider costs money: it shows what it would send and asks first.

    --forward stops where the model asks for something else than was recorded. --live goes on from
    there: a call that was recorded has its recorded result, and for every other one it waits. No
    tool is run: give its result with --continue and --result, or let a program run it behind its
    gate (hansard.continue_replay).

    Exits 0 when it was done, 1 with --check when the answer differs, 2 when it was refused or
    failed, 3 when it waits.

    Example: hansard replay 4bf92f35-00f0 --budget 2000 --remove docs/large.md --preview
    """
    names = ("data", "config", "retention", "model_server", "policy")
    config = read_config(**{name: line[name] for name in names})
    try:
        file = Path(step) if Path(step).is_file() and not line["goes_on"] else None
        step_id = step if file is None else step_of_file(file)
        folder = _folder(line["data"], may_begin=file is not None)
        with replaying(folder, config) as (replays, readers, ingest):
            if line["goes_on"]:
                code = _go_on(replays, readers, step, line, as_json=as_json)
            else:
                if file is not None:
                    import_files(ingest, [file])
                code = _replay(replays, readers, _request_of(step_id, line), line, as_json=as_json)
    except NotReplayable as why:
        if as_json:
            print_json({"error": _refusal(why)})
        raise Misused(str(why)) from None
    if code:
        raise click.exceptions.Exit(code)


def _folder(data: str | None, *, may_begin: bool) -> DataFolder:
    """Return the store to replay in; for a step that is brought along, a new one where none is."""
    folder = DataFolder(data_folder(data, os.environ))
    if not may_begin or folder.has_store:
        return use_store(data)
    folder.create()
    return folder


def _replay(
    replays: Replays,
    readers: Readers,
    request: ReplayInput,
    line: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    if line["preview"] or not (line["yes"] or request.recorded):
        shown = replays.preview(request)
        if line["preview"]:
            print_json(shown) if as_json else print_preview(shown)
            return _SAME if shown["refusal"] is None else _REFUSED
        if shown["sends"] and shown["provider"] != "scripted" and shown["refusal"] is None:
            print_preview(shown, err=True)
            confirm("Send it?", yes=False)
    if request.live:
        click.echo("live: turns past the recording are sent and paid for as well", err=True)
    row = replays.start(request)
    return _ended(replays, readers, row.replay_id, line, as_json=as_json)


def _go_on(
    replays: Replays, readers: Readers, replay_id: str, line: Mapping[str, Any], *, as_json: bool
) -> int:
    """Have a replay that stopped go on live; asks first, for it costs money."""
    changes = changes_from(line)
    if changes or any(line[name] for name in ("exact", "recorded", "forward", "preview", "live")):
        raise Misused(
            "--continue takes --result, --max-turns, --max-usd, --script, --allow-other-address "
            "and --allow-provider-side-effects"
        )
    request = GoOn(
        results=[_result(one) for one in line["results"]],
        max_turns=line["max_turns"],
        max_usd=line["max_usd"],
        script=_script(line["script"]),
        allow_other_address=line["allow_other_address"],
        allow_provider_side_effects=line["allow_provider_side_effects"],
    )
    row = replays.row(replay_id)
    guess = ((row.report or {}).get("ask") or {}).get("estimate") or {}
    if not row.steps and row.state == "waiting":
        click.echo("what was approved is sent now", err=True)
    elif not line["yes"] and request.script is None:
        usd = guess.get("usd")
        cost = "an unknown price" if usd is None else f"about ${usd:.6f}"
        model = printable(str(guess.get("model", "the model")))
        click.echo(f"the next turn asks {model}, {cost}", err=True)
        confirm("Go on live?", yes=False)
    replays.go_on(row.replay_id, request, by=user_name())
    return _ended(replays, readers, row.replay_id, line, as_json=as_json)


def _result(text: str) -> ResultInput:
    call_id, has_one, value = text.partition("=")
    if not call_id or not has_one:
        raise Misused(f"--result {text!r}: expected CALL=TEXT")
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    return ResultInput(call_id=call_id, result=found if isinstance(found, dict | list) else value)


def _ended(
    replays: Replays, readers: Readers, replay_id: str, line: Mapping[str, Any], *, as_json: bool
) -> int:
    replays.wait(replay_id, seconds=_WAIT_S)
    with readers.read() as connection:
        body = replay_body(connection, replays.row(replay_id), now_ns=time.time_ns())
    print_json(body) if as_json else print_replay(body)
    if body["state"] in ("failed", "refused"):
        return _REFUSED
    if body["state"] == "waiting":
        return _WAITS
    return _DIFFERENT if line["check"] and is_other_answer(body) else _SAME


def is_other_answer(body: ReplayBody) -> bool:
    """Whether an answer differs from the recorded one, in words or in tool calls."""
    if body["divergence"] is not None or (body["spread"] or {}).get("different", 1) > 1:
        return True
    output = (body["comparison"] or {}).get("output")
    return bool(output is None or not output["is_empty"])


def _request_of(step_id: str, line: Mapping[str, Any]) -> ReplayInput:
    changes = changes_from(line)
    if line["exact"] and (changes or line["forward"]):
        raise Misused("--exact changes nothing: leave out the changes and --forward")
    if line["results"]:
        raise Misused("--result gives what a call came to of a replay that waits: use --continue")
    if line["exact"] and line["live"]:
        raise Misused("--exact changes nothing: leave out --live")
    is_fork = line["forward"] or line["live"]
    mode: Mode | None = "forward" if is_fork else "exact" if line["exact"] else None
    bounds = {name: line[name] for name in ("max_turns", "max_usd") if line[name] is not None}
    try:
        return ReplayInput(
            step_id=step_id,
            mode=mode,
            recorded=line["recorded"],
            mutations=changes,
            n=line["n"],
            notes=line["notes"],
            allow_other_address=line["allow_other_address"],
            allow_provider_side_effects=line["allow_provider_side_effects"],
            script=_script(line["script"]),
            live=line["live"],
            **bounds,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _script(path: Path | None) -> Json | None:
    if path is None:
        return None
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is no script: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is no script: expected a JSON object")
    return found


def _refusal(why: NotReplayable) -> Json:
    return {
        "code": why.code,
        "message": str(why),
        "details": {**why.facts, "reason": why.reason.value, "replay_id": why.replay_id},
    }

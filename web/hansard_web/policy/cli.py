"""`hansard policy`: what the rules say of a call or an item, and the rules themselves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_store.content.retention import Retention
from hansard_store.policy.checks import check_row, record_check
from hansard_store.policy.rules import list_policies, rule_history
from hansard_web.app.config import Config
from hansard_web.cli.base import (
    CommandGroup,
    json_option,
    print_answer,
    print_json,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import find_store, lent_readers, reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_table
from hansard_web.policy.bodies import PolicyInput
from hansard_web.policy.decider import Decision, decision_body
from hansard_web.policy.json import rule_version_body, rules_body, version_body
from hansard_web.policy.service import PolicyService, read_file

_CONTEXT = ("agent", "task_type", "provider", "model", "environment", "user", "project")


@click.group(cls=CommandGroup)
def policy() -> None:
    """Policy: check, explain, and the rules with their versions."""


def _asking(function: Any) -> Any:
    """Add the options that say what is asked."""
    for name in reversed(_CONTEXT):
        function = click.option(f"--{name.replace('_', '-')}", name, help="Of who asks.")(function)
    options = (
        click.option("--tool", help="Name of the tool to be called."),
        click.option("--tool-class", help="shell, web, file, database …"),
        click.option("--effect", type=click.Choice(["read", "write"]), help="Of the tool."),
        click.option("--arguments", default="{}", help="Of the call, as JSON."),
        click.option("--item", help="Id of the item to be seen, in place of a tool."),
        click.option("--kind", help="Of the item."),
        click.option("--source-uri", help="Of the item."),
        click.option("--tag", "tags", multiple=True, help="Of the item; several times."),
        click.option(
            "--sensitivity",
            type=click.Choice(["public", "internal", "restricted", "secret"]),
            help="Of the item, or of what the tool gives.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@policy.command()
@_asking
@setting_options("data", "policy", "retention")
@json_option
def check(*, as_json: bool, **options: Any) -> None:
    """Decide on a tool call or an item by the rules in force, and record the check.

    Exits 1 where it is not allowed, or something must be met first.

    Example: hansard policy check --agent coding --tool shell --tool-class shell
    --arguments '{"command": "ls"}'
    """
    with _opened_service(options) as (config, service):
        request = _request_of(options)
        current = service.in_force()
        made = request.check(current.policy)
        folder = find_store(options.get("data"))
        retention = Retention.of(folder, config.retention)
        number = record_check(folder, check_row(retention, made, now_ns=time.time_ns()))
        body = {"check_id": number, **decision_body(Decision, made.json())}
    print_answer(body, lambda body: print_facts(_decision(body)), as_json=as_json)
    if not body["allowed"]:
        raise click.exceptions.Exit(1)


@policy.command()
@_asking
@setting_options("data", "policy")
@json_option
def explain(*, as_json: bool, **options: Any) -> None:
    """Tell how every rule comes out for a hypothetical call or item; nothing is recorded.

    Example: hansard policy explain --agent research --tool write_file --effect write
    """
    with _opened_service(options) as (_, service):
        found = _request_of(options).explained(service.in_force().policy)
    if as_json:
        print_json(found)
        return
    print_facts(_decision(found["decision"]))
    _print_rows(
        found["rules"],
        {"rule": "rule_id", "effect": "effect", "priority": "priority", "outcome": "outcome"},
    )


@policy.group(cls=CommandGroup)
def rules() -> None:
    """Rules: those in force, putting others, their history."""


@rules.command("list")
@setting_options("data", "policy")
@json_option
def list_rules(*, as_json: bool, **options: Any) -> None:
    """List the rules in force, in the order in which they are named.

    Example: hansard policy rules list
    """
    with _opened_service(options) as (_, service):
        body = rules_body(service.shown())
    if as_json:
        print_json(body)
        return
    _print_rows(
        body["rules"],
        {
            "rule": "rule_id",
            "rule set": "rule_set",
            "version": "version",
            "effect": "effect",
            "priority": "priority",
        },
    )
    if body["problem"]:
        print_lines([body["problem"]])


@rules.command()
@click.argument("files", nargs=-1, required=True)
@setting_options("data")
@click.option("--replace-version", type=int, help="Only if this version is in force; 0: none.")
@json_option
def put(
    *, files: Sequence[str], replace_version: int | None, as_json: bool, **options: Any
) -> None:
    """Put rule sets in force in place of those that were put before: all of them, or none.

    FILES are JSON or YAML, or shipped:NAME for one that comes with Hansard.

    Example: hansard policy rules put shipped:coding-agent house-rules.yaml
    """
    sets = [read_file(Path(name)) for name in files]
    with _opened_service(options) as (_, service):
        current = service.replace(sets, expected=replace_version, actor=f"cli, {user_name()}")
    body = rules_body(current)
    line = f"version {body['version']}: {len(body['rules'])} rules in force"
    print_answer(body, lambda _: print_lines([line]), as_json=as_json)


@rules.command()
@click.argument("rule_id", required=False)
@setting_options("data")
@json_option
def history(*, rule_id: str | None, as_json: bool, **options: Any) -> None:
    """List the versions of the rules, or of one rule, the newest first.

    Example: hansard policy rules history no-secrets
    """
    with reading(options.get("data")) as connection:
        if rule_id is None:
            versions = list_policies(connection, limit=500)
            items: Sequence[Mapping[str, Any]] = [version_body(one) for one in versions]
        else:
            items = [rule_version_body(one) for one in rule_history(connection, rule_id, limit=500)]
    if as_json:
        print_json({"items": items})
        return
    columns = ("policy", "time", "source", "actor" if rule_id is None else "effect")
    _print_rows(items, {name: name for name in columns})


@contextmanager
def _opened_service(options: dict[str, Any]) -> Iterator[tuple[Config, PolicyService]]:
    names = ("data", "policy", "retention")
    config = read_config(**{name: options[name] for name in names if name in options})
    with lent_readers(options.get("data")) as readers:
        folder = find_store(options.get("data"))
        yield config, PolicyService(folder, readers.read, config.policy)


def _request_of(options: dict[str, Any]) -> PolicyInput:
    body: Json = {
        "context": {name: options[name] for name in _CONTEXT if options[name] is not None}
    }
    fields = {"sensitivity": options["sensitivity"]}
    if options["tool"] is not None:
        fields |= {
            "name": options["tool"],
            "class": options["tool_class"],
            "effect": options["effect"],
            "arguments": _json(options["arguments"]),
        }
        body["tool"] = fields
    if options["item"] is not None:
        body["item"] = {
            "id": options["item"],
            "kind": options["kind"],
            "source_uri": options["source_uri"],
            "tags": list(options["tags"]),
            "sensitivity": options["sensitivity"],
        }
    try:
        return PolicyInput.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: {first['msg']}".removeprefix(": ")) from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--arguments is not JSON: {error}") from None


def _decision(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("effect", body["effect"]), ("why", body["reason"])]
    if body["obligations"]:
        facts.append(("to be met", ", ".join(body["obligations"])))
    return facts


def _print_rows(bodies: Sequence[Mapping[str, Any]], fields: Mapping[str, str]) -> None:
    """Print a line for each body: its fields under their headings."""
    columns = [Column(name) for name in fields]
    print_table(columns, [[str(one[name]) for name in fields.values()] for one in bodies])

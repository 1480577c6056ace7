"""`hansard hook`: what coding agents run at points of their life cycle, and how they are set up.

The events themselves never come here: `hansard._cli.main` hands them to `hansard._hooks.process`.
This is their help, and `install`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import click

from hansard._hooks.process import KINDS, PRE, run

_TIMEOUT_S: Final = 10
# Claude Code's names of events, ours, whether a matcher belongs to it, and whether it may wait.
_EVENTS: Final = (
    ("SessionStart", "session-start", False, False),
    ("UserPromptSubmit", "user-prompt-submit", False, True),
    ("PreToolUse", PRE, True, False),
    ("PostToolUse", "post-tool-use", True, True),
    ("PostToolUseFailure", "post-tool-use", True, True),
    ("Stop", "stop", False, True),
    ("SessionEnd", "session-end", False, False),
)
_SENTENCES: Final = {
    PRE: "Warn before a call that cannot be undone; record its score.",
    "post-tool-use": "Record a call with its result.",
    "session-start": "Record that a session began.",
    "user-prompt-submit": "Record what was asked.",
    "stop": "Record the last answer.",
    "session-end": "Record that a session ended.",
}


@click.group(epilog="Events are read from stdin as JSON; an event always ends with 0.")
def hook() -> None:
    """Warn agents before commands that cannot be undone, and record their sessions.

    Example: hansard hook install --claude-code --project --write
    """


def _event_command(verb: str) -> click.Command:
    @click.command(verb, help=_SENTENCES[verb])
    @click.option("--agent", help="Name of the agent, where its event does not tell.")
    @click.option("--data", help="The data folder; else the setting.")
    @click.option("--form", help="Form of the warning: claude-code, system-message or text.")
    @click.option("--threshold", help="Score from which it warns, 0 to 1; else the setting.")
    @click.option("--ask", is_flag=True, help="Have Claude Code put the call to the person.")
    def command(**_: Any) -> None:
        run(sys.argv[2:])

    return command


for _verb in KINDS:
    hook.add_command(_event_command(_verb))


@hook.command()
@click.option("--claude-code", "is_claude", is_flag=True, help="For Claude Code's settings.json.")
@click.option("--project", "scope", flag_value="project", help=".claude/settings.json here.")
@click.option("--user", "scope", flag_value="user", default=True, help="~/.claude/settings.json.")
@click.option("--write", is_flag=True, help="Merge it into the file instead of printing it.")
@click.option("--ask", is_flag=True, help="Put a call that is warned of to the person.")
def install(*, is_claude: bool, scope: str, write: bool, ask: bool) -> None:
    """Print what runs the hooks, or merge it into an agent's settings.

    Example: hansard hook install --claude-code --user --write
    """
    if not is_claude:
        raise click.UsageError("name the agent: --claude-code; others: docs/hooks.md")
    # By its path: an agent's PATH may be another one.
    program = shutil.which(sys.argv[0]) or shutil.which("hansard") or "hansard"
    made = claude_code_hooks(program, asks=ask)
    if not write:
        click.echo(json.dumps({"hooks": made}, indent=2))
        return
    base = Path.cwd() if scope == "project" else Path.home()
    path = base / ".claude" / "settings.json"
    click.echo(_merge_into(path, made), err=True)


def claude_code_hooks(program: str, *, asks: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return the `hooks` of Claude Code's settings; what may wait runs beside the agent."""
    found = {}
    program = f'"{program}"' if " " in program else program
    for event, verb, has_matcher, is_async in _EVENTS:
        ask = " --ask" if asks and verb == PRE else ""
        command: dict[str, Any] = {
            "type": "command",
            "command": f"{program} hook {verb}{ask}",
            "timeout": _TIMEOUT_S,
        }
        if is_async:
            command["async"] = True
        matcher = {"matcher": "*"} if has_matcher else {}
        found[event] = [{**matcher, "hooks": [command]}]
    return found


def _merge_into(path: Path, made: dict[str, list[dict[str, Any]]]) -> str:
    """Add the hooks to a settings file, in place of earlier ones of ours; all else stays."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = {}
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot read {path}: {error}; nothing was changed") from None
    hooks = known.get("hooks", {}) if isinstance(known, dict) else None
    if not isinstance(hooks, dict):
        raise click.ClickException(f"{path} is no settings file; nothing was changed")
    for event, groups in made.items():
        others = [one for one in hooks.get(event, []) if not _is_ours(one)]
        hooks[event] = [*others, *groups]
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps({**known, "hooks": hooks}, indent=2) + "\n", encoding="utf-8")
    if path.exists():
        shutil.copymode(path, beside)
    beside.replace(path)
    return f"{path}: hooks for {', '.join(made)}"


def _is_ours(group: Any) -> bool:
    """Whether a group of hooks holds nothing but commands of ours."""
    commands = group.get("hooks") if isinstance(group, dict) else None
    return bool(commands) and all(
        isinstance(one, dict) and " hook " in str(one.get("command")) and "hansard" in str(one)
        for one in commands or ()
    )

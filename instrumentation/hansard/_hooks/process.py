"""`hansard hook EVENT` as a process: reads one event, warns, records, and always ends with 0.

The agent waits for this process. `pre-tool-use` prints first; what it records is left to a child
that has let go of the agent's pipes. Nothing that goes wrong is seen by the agent.
"""

from __future__ import annotations

import os
import sys
import time

from hansard._hooks.deadline import DeadlineExceeded, end_after
from hansard._hooks.event import HookEvent, read_event
from hansard._hooks.settings import HookSettings, load_hook_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hansard._hooks.risk_score import HookEvaluation

PRE = "pre-tool-use"
KINDS = {
    PRE: "pre_tool_use",
    "post-tool-use": "post_tool_use",
    "session-start": "session_start",
    "user-prompt-submit": "prompt",
    "stop": "stop",
    "session-end": "session_end",
}
_CLAUDE_CODE, _MESSAGE, _TEXT = "claude-code", "system-message", "text"  # forms of a warning
_OPTIONS = ("--agent", "--data", "--form", "--threshold")
_RECORDING_S = 10.0  # at most, for what is done after the agent was answered


def _options_of(words: Sequence[str]) -> dict[str, str]:
    """Return the options behind the verb on the command line; unknown words are ignored."""
    options = {"--ask": ""} if "--ask" in words else {}
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _OPTIONS:
            options[name] = value if equals else "".join(words[at + 1 : at + 2])
    return options


def run(arguments: Sequence[str]) -> None:
    """Handle one event and end the process with 0, whatever happens."""
    try:
        _handle(arguments[0], _options_of(arguments[1:]))
    except BaseException:  # the border: an agent's call is never held up by what observes it
        pass
    finally:
        os._exit(0)


def _handle(verb: str, options: dict[str, str]) -> None:
    time_ns = time.time_ns()
    settings = load_hook_settings(
        {"data": options.get("--data"), "hook_threshold": options.get("--threshold")}
    )
    end_after(settings.timeout_ms / 1000)
    event = read_event()
    if event is None:
        return
    if verb != PRE:
        end_after(_RECORDING_S)
        _record(verb, event, settings, options, time_ns=time_ns)
        return
    from hansard._hooks.risk_score import evaluate

    evaluation = None
    try:
        evaluation = evaluate(event, settings)
        if evaluation is not None and evaluation.is_warned:
            _print(_rendered(evaluation, event, options))
    except (DeadlineExceeded, Exception):  # no evaluator in time; the call is recorded all the same
        evaluation = None
    end_after(_RECORDING_S)
    if not settings.record or not event.session:
        return
    from hansard._hooks.pairing import open_call

    call_id = open_call(event, settings.data, time_ns=time_ns)
    _in_background(
        lambda: _record(
            verb, event, settings, options, time_ns=time_ns, call_id=call_id, evaluation=evaluation
        )
    )


def _rendered(evaluation: HookEvaluation, event: HookEvent, options: dict[str, str]) -> str:
    """Return the warning in the form that its reader understands; no part of the command is in it.

    Claude Code (hooks reference, PreToolUse): `additionalContext` of `hookSpecificOutput` is added
    to the model's context, `systemMessage` is shown to the person; without `permissionDecision` the
    usual permission flow goes on. Gemini CLI's BeforeTool and Codex show `systemMessage`.
    """
    text = (
        f"Hansard: this call may not be undone (score {evaluation.score:.2f}, warnings from "
        f"{evaluation.threshold:.2f}): {evaluation.reason}. Make sure that it is what was asked "
        "for, that it names the right target, and that there is a copy; otherwise ask first."
    )
    form = options.get("--form")
    if form not in (_CLAUDE_CODE, _MESSAGE, _TEXT):
        form = {"PreToolUse": _CLAUDE_CODE, "BeforeTool": _MESSAGE}.get(event.name, _TEXT)
    if form == _TEXT:
        return text + "\n"
    import json

    if form == _MESSAGE:
        return json.dumps({"systemMessage": text}) + "\n"
    specific = {"hookEventName": "PreToolUse", "additionalContext": text}
    if "--ask" in options:
        specific |= {"permissionDecision": "ask", "permissionDecisionReason": text}
    return json.dumps({"systemMessage": text, "hookSpecificOutput": specific}) + "\n"


def _print(text: str) -> None:
    """Write to stdout at once; it may have no reader."""
    try:
        os.write(1, text.encode())
    except OSError:
        return


def _record(
    verb: str,
    event: HookEvent,
    settings: HookSettings,
    options: dict[str, str],
    *,
    time_ns: int,
    call_id: str | None = None,
    evaluation: HookEvaluation | None = None,
) -> None:
    """Send what happened to the server, or write it where the next one finds it."""
    if not settings.record or not event.session:
        return
    from hansard._hooks.delivery import deliver
    from hansard._hooks.pairing import close_call, drop_stale
    from hansard._hooks.record import agent_of, make_record

    if call_id is None:
        is_call = verb == "post-tool-use"
        call_id = close_call(event, settings.data, time_ns=time_ns) if is_call else ""
    kind = KINDS[verb]
    if evaluation is not None:
        kind = "warned" if evaluation.is_warned else "evaluated"
    agent = agent_of(event, options.get("--agent"))

    def make(redacts: bool) -> bytes:
        return make_record(
            kind,
            event,
            settings,
            time_ns=time_ns,
            agent=agent,
            call_id=call_id,
            evaluation=evaluation,
            redacts=redacts,
        )

    deliver(make, settings, time_ns=time_ns)
    if verb == "session-end":
        drop_stale(settings.data)


def _in_background(work: Callable[[], None]) -> None:
    """Do work in a child that holds none of the agent's pipes; here where there is no fork."""
    if not hasattr(os, "fork"):
        _let_go()
        work()
        return
    sys.stdout = sys.stderr = None  # nothing of theirs is flushed twice
    if os.fork():
        return
    try:
        os.setsid()
        _let_go()
        end_after(_RECORDING_S)
        work()
    finally:
        os._exit(0)


def _let_go() -> None:
    """Point stdin, stdout and stderr at nothing: who waits for their end goes on."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)

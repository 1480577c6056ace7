"""The warning in the form that its reader understands.

Claude Code (hooks reference, PreToolUse): `additionalContext` of `hookSpecificOutput` is added to
the model's context, `systemMessage` is shown to the person; without `permissionDecision` the usual
permission flow goes on. Gemini CLI's BeforeTool and Codex show `systemMessage`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hansard._hooks.escalation import HookEvaluation

CLAUDE_CODE, MESSAGE, TEXT = "claude-code", "system-message", "text"
FORMS = (CLAUDE_CODE, MESSAGE, TEXT)


def form_for(event_name: str) -> str:
    """Return the form for a sender by the name of its event; plain text where none is known."""
    return {"PreToolUse": CLAUDE_CODE, "BeforeTool": MESSAGE}.get(event_name, TEXT)


def warning_text(evaluation: HookEvaluation) -> str:
    """Return the warning in words, without any part of the command."""
    return (
        f"Hansard: this call may not be undone (score {evaluation.score:.2f}, warnings from "
        f"{evaluation.threshold:.2f}): {evaluation.reason}. Make sure that it is what was asked "
        "for, that it names the right target, and that there is a copy; otherwise ask first."
    )


def render(evaluation: HookEvaluation, form: str, *, asks: bool = False) -> str:
    """Return what is printed. `asks` has Claude Code put the call to the person."""
    text = warning_text(evaluation)
    if form == TEXT:
        return text + "\n"
    import json

    if form == MESSAGE:
        return json.dumps({"systemMessage": text}) + "\n"
    specific = {"hookEventName": "PreToolUse", "additionalContext": text}
    if asks:
        specific |= {"permissionDecision": "ask", "permissionDecisionReason": text}
    return json.dumps({"systemMessage": text, "hookSpecificOutput": specific}) + "\n"

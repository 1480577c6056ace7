"""What the record shows of one execution of a tool: it succeeded, it failed, or that is not known.

The span's status decides where it is an error. Else the result may tell: fields such as `is_error`
or `exit_code`, an exit code in its text, and patterns of a topic or of the configuration. An ended
span without an error is a success, unless success evidence is required of its tool, or a shell ran
the command in a way that hides its exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import orjson

from hansard.adapters.claims.shell import ShellCommand, commands_of, shell_text
from hansard_collector.evaluation.languages import words_of
from hansard_collector.evaluation.topics import ClaimTopic, Pattern, parts_of, tool_key

Status = Literal["ok", "unset", "error", "open", "cancelled"]
OutcomeKind = Literal["succeeded", "failed", "unknown"]

_MOST_TEXT: Final = 20_000  # characters of a result, half of them its end
_MOST_DEPTH: Final = 4
_EXIT_FIELDS: Final = ("exit_code", "exitCode", "returncode", "return_code", "returnCode", "rc",
                       "exit_status", "exitStatus")  # fmt: skip
_ERROR_FIELDS: Final = ("is_error", "isError")
_SUCCESS_FIELDS: Final = ("success", "ok", "succeeded")
_HTTP_FIELDS: Final = ("status", "status_code", "statusCode", "http_status", "code")
_STATE_FIELDS: Final = ("status", "state", "conclusion", "outcome", "result")
_FAILED_STATES: Final = words_of("failed_states")
_DONE_STATES: Final = words_of("done_states")
# Tools that return data: a state in their result is the state of something else.
_READING: Final = words_of("reading_verbs")
# Words of a short result that name a failure, unless they say that there was none.
_FAILURE_WORDS: Final = re.compile(
    r"\b(?:declined|refused|rejected|denied|failed|failure|could not|couldn't|cannot|can't|unable"
    r"|not (?:found|possible|allowed|available)|forbidden|unauthori[sz]ed|errors?|invalid|expired"
    r"|timed out|timeout|unavailable|aborted|blocked)\b",
    re.IGNORECASE,
)
_NONE_OF: Final = re.compile(
    r"\b(?:0|no|zero|without|never|not)\s+(?:any\s+)?(?:declined|refused|rejected|denied|failed|"
    r"failures?|errors?|invalid|blocked)\b|\b(?:errors?|failures?|failed)\W{1,3}0\b",
    re.IGNORECASE,
)
_SHORT_CHARS: Final = 300
_EXIT_TEXT: Final = re.compile(
    r"^\W{0,3}(?:process |command )?(?:exited with |exit(?:ed)? (?:code|status)|returned)"
    r"(?: exit)?(?: code| status)?[:= ]{1,3}(-?\d{1,5})\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """One execution of a tool. Times are Unix nanoseconds; `ended_ns` is None while it is open."""

    step_id: str
    tool: str
    status: Status
    started_ns: int
    ended_ns: int | None
    arguments: Any = None
    result: Any = None
    is_recorded: bool = True  # False: only messages tell of it, so its end says nothing


@dataclass(frozen=True, slots=True)
class OutcomeEvidence:
    """What a person configured for tools: which results count as which outcome."""

    tools: tuple[str, ...]
    success_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failure_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    success_exit_codes: tuple[int, ...] = (0,)
    patterns: Pattern = field(default_factory=Pattern)
    is_required: bool = False  # without success evidence an execution is of unknown outcome

    def matches(self, key: str) -> bool:
        """Return whether it is about a tool, by its key."""
        return any(fnmatchcase(key, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How an execution ended, and the evidence."""

    kind: OutcomeKind
    why: str  # in words of Hansard's own, nothing recorded


UNKNOWN: Final = ToolOutcome("unknown", "its result does not tell")


def relevant_commands(execution: ToolExecution, topic: ClaimTopic) -> list[ShellCommand] | None:
    """Return the commands of a topic that a shell ran; None where the tool itself is of the topic.

    Empty: the execution has nothing to do with the topic.
    """
    key = tool_key(execution.tool)
    if topic.matches_tool(key):
        return None
    if not topic.commands:
        return []
    text = shell_text(key, _opened(execution.arguments))
    if text is None:
        return []
    return [one for one in commands_of(text) if any(p.search(one.text) for p in topic.commands)]


def is_relevant(execution: ToolExecution, topic: ClaimTopic) -> bool:
    """Return whether an execution is evidence of what a topic is about."""
    commands = relevant_commands(execution, topic)
    return commands is None or bool(commands)


def outcome_of(
    execution: ToolExecution, topic: ClaimTopic, evidence: Sequence[OutcomeEvidence] = ()
) -> ToolOutcome:
    """Return how a relevant execution ended for a topic."""
    if execution.status == "open":
        return ToolOutcome("unknown", "it has not ended")
    if execution.status == "cancelled":
        return ToolOutcome("unknown", "it was cancelled")
    result = _opened(execution.result)
    text = _text_of(result)
    key = tool_key(execution.tool)
    rules = [one for one in evidence if one.matches(key)]
    for rule in rules:
        if (found := _configured(rule, result, text)) is not None:
            return found
    commands = relevant_commands(execution, topic)
    if commands is None:
        return _of_tool(execution, topic, result, text, is_required=_required(rules))
    return _of_shell(execution, topic, commands[-1:], result, text)


def _required(rules: Sequence[OutcomeEvidence]) -> bool:
    return any(rule.is_required for rule in rules)


def _of_tool(
    execution: ToolExecution, topic: ClaimTopic, result: Any, text: str, *, is_required: bool
) -> ToolOutcome:
    if execution.status == "error":
        return ToolOutcome("failed", "its step ended with an error")
    is_data = _is_reading(execution.tool)
    stated = _of_fields(result, text, is_data=is_data)
    if stated is not None and stated.kind == "failed":
        if shell_text(tool_key(execution.tool), _opened(execution.arguments)) is None:
            return stated
        return ToolOutcome("unknown", "the command that a shell ran failed, and not the shell")
    if (found := _of_patterns(topic.results, text)) is not None:
        return found
    if stated is not None:
        return stated
    if is_required:
        return ToolOutcome("unknown", "the success evidence that is required of it is missing")
    if not execution.is_recorded:
        return ToolOutcome("unknown", "no step recorded it, and its result does not tell")
    if not is_data and (doubt := _doubt(result, text)) is not None:
        return doubt
    return ToolOutcome("succeeded", "its step ended without an error")


def _is_reading(tool: str) -> bool:
    return next(iter(parts_of(tool_key(tool))), "") in _READING


def _doubt(result: Any, text: str) -> ToolOutcome | None:
    """Return why a result that names no failure is no evidence of success either, or None."""
    state = _field(result, _STATE_FIELDS)
    if isinstance(state, str) and state.strip() and len(state.split()) == 1:
        return ToolOutcome("unknown", "its result has a state that is not known")
    if isinstance(result, Mapping):
        flags = [one for one in result.values() if isinstance(one, bool)]
        if flags and not any(flags):
            return ToolOutcome("unknown", "a field of its result is false")
    if len(text) <= _SHORT_CHARS and _FAILURE_WORDS.search(_NONE_OF.sub(" ", text)):
        return ToolOutcome("unknown", "its result may name a failure")
    return None


def _of_shell(
    execution: ToolExecution,
    topic: ClaimTopic,
    commands: Sequence[ShellCommand],
    result: Any,
    text: str,
) -> ToolOutcome:
    """Return the outcome of the last command of the topic that a shell call ran."""
    found = _of_patterns(topic.results, text)
    if found is not None and found.kind == "failed":
        return found
    command = commands[0]
    code = _exit_code(result, text)
    if code is None and execution.status == "error":
        code = 1
    if code is None and (stated := _of_fields(result, text)) is not None:
        code = 1 if stated.kind == "failed" else 0
    if code not in (None, 0):
        if command.nonzero_means_failed:
            return ToolOutcome("failed", "its exit code is not zero")
        return found or ToolOutcome("unknown", "the exit code may be another command's")
    if found is not None:
        return found
    if code == 0:
        if command.zero_means_done:
            return ToolOutcome("succeeded", "its exit code is zero")
        return ToolOutcome("unknown", "the exit code is another command's")
    if execution.status == "ok" and command.zero_means_done and execution.is_recorded:
        return ToolOutcome("succeeded", "its step ended with status OK")
    return ToolOutcome("unknown", "no exit code was recorded")


def _of_patterns(patterns: Pattern, text: str) -> ToolOutcome | None:
    if any(one.search(text) for one in patterns.failure):
        return ToolOutcome("failed", "its result tells of a failure")
    if any(one.search(text) for one in patterns.success):
        return ToolOutcome("succeeded", "its result tells of success")
    return None


def _configured(rule: OutcomeEvidence, result: Any, text: str) -> ToolOutcome | None:
    for fields, kind in ((rule.failure_fields, "failed"), (rule.success_fields, "succeeded")):
        for name, values in fields.items():
            value = _field(result, (name,))
            if value is not None and _plain(value) in values:
                return ToolOutcome(kind, f"its field {name} says so")  # type: ignore[arg-type]  # one of two
    if (found := _of_patterns(rule.patterns, text)) is not None:
        return found
    code = _exit_code(result, text)
    if code is not None and rule.success_exit_codes != (0,):
        is_success = code in rule.success_exit_codes
        return ToolOutcome("succeeded" if is_success else "failed", f"its exit code is {code}")
    return None


def _of_fields(result: Any, text: str, *, is_data: bool = False) -> ToolOutcome | None:
    """Return the outcome by the fields of a result that tools use for it everywhere.

    `is_data`: the tool returns data, so that states and exit codes in it are not its own.
    """
    for names, failing in ((_ERROR_FIELDS, True), (_SUCCESS_FIELDS, False)):
        value = _field(result, names)
        if isinstance(value, bool):
            kind: OutcomeKind = "failed" if value is failing else "succeeded"
            if kind == "failed" or not failing:
                return ToolOutcome(kind, "a field of its result says so")
    if not is_data and (found := _of_state(result, text)) is not None:
        return found
    error = _field(result, ("error", "errors"))
    if isinstance(error, str | Mapping | list) and error:
        return ToolOutcome("failed", "its result names an error")
    return None


def _of_state(result: Any, text: str) -> ToolOutcome | None:
    code = _exit_code(result, text)
    if code is not None:
        kind: OutcomeKind = "succeeded" if code == 0 else "failed"
        return ToolOutcome(kind, f"its exit code is {'zero' if code == 0 else 'not zero'}")
    state = _field(result, _STATE_FIELDS)
    if isinstance(state, str) and (word := "_".join(state.lower().split())):
        if word in _FAILED_STATES:
            return ToolOutcome("failed", "its result has a state of failure")
        if word in _DONE_STATES:
            return ToolOutcome("succeeded", "its result has a state of success")
    http = _field(result, _HTTP_FIELDS)
    if isinstance(http, int) and not isinstance(http, bool) and 400 <= http <= 599:
        return ToolOutcome("failed", "its result has an HTTP status of failure")
    return None


def _exit_code(result: Any, text: str) -> int | None:
    value = _field(result, _EXIT_FIELDS)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _EXIT_TEXT.search(text)
    return int(match[1]) if match else None


def _field(result: Any, names: Sequence[str]) -> Any:
    """Return a field of a result, or of the object that it is wrapped in."""
    if not isinstance(result, Mapping):
        return None
    for name in names:
        if result.get(name) is not None:
            return result[name]
    for wrapper in ("metadata", "result", "output", "data", "structuredContent"):
        inner = _opened(result.get(wrapper))
        if isinstance(inner, Mapping):
            for name in names:
                if inner.get(name) is not None:
                    return inner[name]
    return None


def _opened(value: Any) -> Any:
    """Return a JSON text as its value, also one in the one part of a result of MCP."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"') and len(value) <= 1_000_000:
        try:
            return _opened(orjson.loads(value))
        except orjson.JSONDecodeError:
            return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        part = value[0]
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            return _opened(part["text"])
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _text_of(result: Any) -> str:
    """Return the words of a result; of a long one its beginning and its end."""
    text = "\n".join(_texts(result, depth=0))
    if len(text) > _MOST_TEXT:
        half = _MOST_TEXT // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return text


def _texts(value: Any, *, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MOST_DEPTH:
        items = value.values() if isinstance(value, Mapping) else value
        if isinstance(items, Sequence) or isinstance(value, Mapping):
            for one in list(items)[:200]:
                yield from _texts(one, depth=depth + 1)

"""The changes of a replay, made on the recorded request itself: its JSON is edited, nothing else.

Positions count messages as a step shows them (`call.input`): the system text beside the
conversation (`system`, `instructions`), where there is one, is 0; then the entries of `messages` or
`input`, but for those with nothing to read (encrypted reasoning, a message without content). An
`input` that is a text is one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hansard_compiler.replay import json_edit
from hansard_compiler.replay import mutations as change
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.json_edit import (
    Array,
    Element,
    JsonText,
    Member,
    NotEditable,
    Object,
    Scalar,
    elements_at,
    find,
    text_at,
    value_of,
)

CHAT, RESPONSES, MESSAGES = "chat_completions", "responses", "messages"
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})  # refused without what follows
# What of a message is read: its words, its calls, what else servers put beside them.
_READ: Final = (
    "content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning",
)  # fmt: skip
_SYSTEM_ROLES: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class _Api:
    """Where one API keeps what the changes name."""

    name: str
    entries: str  # the array of the conversation
    system: str | None  # the member beside it that holds the system text
    # Of each setting of `set_sampling` the members that hold it, a path each; the first that is
    # there is edited, and where none is, the last one is added.
    sampling: Mapping[str, Sequence[tuple[str, ...]]]
    required: frozenset[str] = frozenset()  # settings that cannot be taken away
    choice_needs_tools: bool = True  # whether tool_choice without tools is refused


APIS: Final[Mapping[str, _Api]] = {
    "/chat/completions": _Api(
        CHAT,
        "messages",
        None,
        {
            "max_output_tokens": (("max_tokens",), ("max_completion_tokens",)),
            "temperature": (("temperature",),),
            "top_p": (("top_p",),),
            "seed": (("seed",),),
            "effort": (("reasoning_effort",),),
            "stop": (("stop",),),
        },
    ),
    "/responses": _Api(
        RESPONSES,
        "input",
        "instructions",
        {
            "max_output_tokens": (("max_output_tokens",),),
            "temperature": (("temperature",),),
            "top_p": (("top_p",),),
            "effort": (("reasoning", "effort"),),
        },
        choice_needs_tools=False,
    ),
    "/v1/messages": _Api(
        MESSAGES,
        "messages",
        "system",
        {
            "max_output_tokens": (("max_tokens",),),
            "temperature": (("temperature",),),
            "top_p": (("top_p",),),
            "effort": (("output_config", "effort"),),
            "stop": (("stop_sequences",),),
        },
        required=frozenset({"max_output_tokens"}),
    ),
}


def api_of(path: str) -> _Api | None:
    """Return the API that is spoken at a path; None for one whose conversations are not known."""
    return next((one for tail, one in APIS.items() if path.rstrip("/").endswith(tail)), None)


@dataclass(slots=True)
class RequestEdit:
    """A recorded request under edit. `notes` name what was edited beyond what a change names."""

    text: JsonText
    root: Object
    api: _Api | None
    notes: list[str] = field(default_factory=list)

    @property
    def known(self) -> _Api:
        """The API, for a change that needs to know where things are; raises NotReplayable."""
        if self.api is None:
            detail = "only the model of such a request can be changed: its other fields are unknown"
            raise NotReplayable(ReplayReason.NOT_RENDERABLE, detail)
        return self.api


def edit_request(
    data: bytes, path: str, mutations: Sequence[change.Mutation], *, skip_absent: bool = False
) -> tuple[bytes, list[str]]:
    """Return a recorded request with changes, and notes on what else they took along.

    A change that changes nothing leaves every byte; one that does not apply raises NotReplayable,
    unless `skip_absent`: then what is not there is passed over (a later turn of a fork).
    """
    edit = opened(data, path)
    for number, one in enumerate(mutations, 1):
        if isinstance(one, change.ON_COMPILES):
            raise NotReplayable(
                ReplayReason.NO_COMPILATION, f"change {number} ({one.op}) is about items"
            )
        try:
            _apply(edit, one)
        except NotReplayable as why:
            if skip_absent and why.reason in (ReplayReason.ITEM_UNKNOWN, ReplayReason.FIELD_ABSENT):
                continue
            detail = f"change {number} ({one.op}): {why.detail}"
            raise NotReplayable(why.reason, detail, **why.facts) from None
    if edit.api is not None and not _has_words(edit):
        raise NotReplayable(ReplayReason.CONTEXT_EMPTY)
    return edit.text.bytes(), list(dict.fromkeys(edit.notes))


def opened(data: bytes, path: str) -> RequestEdit:
    """Return a request to edit; raises NotReplayable for one that is no JSON object."""
    try:
        text = JsonText(data)
    except NotEditable as error:
        raise NotReplayable(
            ReplayReason.NOT_RENDERABLE, f"the request cannot be edited: {error}"
        ) from None
    if not isinstance(text.root, Object):
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, "the request is no JSON object")
    return RequestEdit(text, text.root, api_of(path))


def _apply(edit: RequestEdit, one: change.Mutation) -> None:
    match one:
        case change.SetProvider():
            return  # the same provider: another one is rendered, not edited
        case change.SetModel():
            if find(edit.root, "model") is None:
                raise NotReplayable(ReplayReason.FIELD_ABSENT, "the request names no model")
            _set(edit, edit.root, "model", one.model)
        case change.SetSampling():
            for name in type(one).model_fields:
                if name in one.model_fields_set and name != "op":
                    _set_sampling(edit, name, getattr(one, name))
        case change.EditMessage():
            _edit_message(edit, one)
        case change.RemoveMessage():
            _remove_message(edit, one.position)
        case change.AddMessage():
            _add_message(edit, one)
        case change.RemoveTool():
            _remove_tool(edit, one.name)


# ---- fields


def _set(edit: RequestEdit, parent: Object, key: str, value: Any) -> None:
    edit.text.set(parent, key, value)
    if json_edit.count_of(parent, key) > 1:
        edit.notes.append(
            f"the recorded request has {key!r} more than once: the last one, which JSON parsers "
            "read, holds the change, and the others are as they were"
        )


def _set_sampling(edit: RequestEdit, name: str, value: Any) -> None:
    paths = edit.known.sampling.get(name)
    if paths is None:
        if find(edit.root, name) is None:
            raise NotReplayable(
                ReplayReason.NOT_RENDERABLE, f"the {edit.known.name} API has no {name}"
            )
        paths = ((name,),)  # a field that the sender added: it is edited where it is
    there = [path for path in paths if find(_parent(edit.root, path), path[-1]) is not None]
    if value is None or value == []:
        _take_away(edit, name, there)
        return
    for path in there or paths[-1:]:
        _set_at(edit, path, value)


def _take_away(edit: RequestEdit, name: str, there: Sequence[tuple[str, ...]]) -> None:
    if not there:
        raise NotReplayable(ReplayReason.FIELD_ABSENT, f"the request sets no {name}")
    if name in edit.known.required:
        raise NotReplayable(
            ReplayReason.NOT_RENDERABLE, f"the {edit.known.name} API demands {name}"
        )
    for path in there:
        parent = _parent(edit.root, path)
        if parent is not None and json_edit.remove(parent, path[-1]) > 1:
            edit.notes.append(f"{path[-1]!r} was in the recorded request more than once: all went")


def _parent(root: Object, path: tuple[str, ...]) -> Object | None:
    node: Any = root
    for key in path[:-1]:
        member = find(node, key)
        node = None if member is None else member.value
    return node if isinstance(node, Object) else None


def _set_at(edit: RequestEdit, path: tuple[str, ...], value: Any) -> None:
    parent = _parent(edit.root, path)
    if parent is not None:
        if path[-1] == "stop" and isinstance(value, list) and len(value) == 1:
            member = find(parent, "stop")  # the API takes one text for a list of one
            if member is not None and value_of(member.value) == value[0]:
                return
        _set(edit, parent, path[-1], value)
        return
    outer = find(edit.root, path[0])
    if outer is None or value_of(outer.value) is None:  # a null is as good as absent
        _set(edit, edit.root, path[0], {path[1]: value})
        return
    raise NotReplayable(ReplayReason.NOT_RENDERABLE, f"{path[0]} of the request is no object")


# ---- the conversation


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the conversation; `at` is its place in the array, None for what is not in it."""

    holder: Member | Element
    at: int | None
    is_system: bool = False

    @property
    def node(self) -> Any:
        return self.holder.value

    @property
    def kind(self) -> str:
        return text_at(self.node, "type") or "message"

    @property
    def is_shown(self) -> bool:
        """Whether there is something to read in it."""
        node = self.node
        if not isinstance(node, Object):
            return bool(value_of(node))
        if self.kind == "reasoning":
            pieces = [*elements_at(node, "summary"), *elements_at(node, "content")]
            return any(text_at(one.value, "text") for one in pieces)
        if self.kind != "message" or self.role == "tool":
            return True
        return any(_says_something(find(node, key)) for key in _READ)

    @property
    def role(self) -> str:
        return "system" if self.is_system else text_at(self.node, "role") or "user"


def entries_of(edit: RequestEdit) -> list[_Entry]:
    """Return the entries that positions count, in order."""
    return [one for one in every_entry(edit) if one.is_shown]


def every_entry(edit: RequestEdit) -> list[_Entry]:
    """Return all entries in order, those with nothing to read among them."""
    api = edit.known
    found = []
    system = None if api.system is None else find(edit.root, api.system)
    if system is not None and value_of(system.value):
        found.append(_Entry(system, None, is_system=True))
    member = find(edit.root, api.entries)
    if member is None:
        return found
    if isinstance(member.value, Array):
        return found + [_Entry(one, at) for at, one in enumerate(member.value.elements)]
    if isinstance(member.value, Scalar) and member.value.text.startswith('"'):
        found.append(_Entry(member, None))
    return found


def _says_something(member: Member | None) -> bool:
    if member is None:
        return False
    if not isinstance(member.value, Array):
        return bool(value_of(member.value))
    return any(
        text_at(one.value, "type") not in _TEXTS or bool(text_at(one.value, "text"))
        for one in member.value.elements
    )


def _at(edit: RequestEdit, position: int) -> _Entry:
    found = entries_of(edit)
    if position >= len(found):
        detail = f"message {position}: the request has {len(found)}, from 0"
        raise NotReplayable(ReplayReason.ITEM_UNKNOWN, detail)
    return found[position]


def _has_words(edit: RequestEdit) -> bool:
    """Whether the request still has content: an entry, or what the provider holds."""
    held = ("previous_response_id", "conversation", "prompt", "thread")
    if any(find(edit.root, name) is not None for name in held):
        return True
    return any(one.role not in _SYSTEM_ROLES for one in every_entry(edit))


def _content(entry: _Entry) -> Member | Element | None:
    """Return what holds the words of an entry: its `content`, or the entry itself for a text."""
    if not isinstance(entry.node, Object):
        return entry.holder
    return find(entry.node, "content")


def texts_in(entry: _Entry) -> list[tuple[Member | Element, int | None]]:
    """Return what holds each text of an entry, with its place among the parts."""
    holder = _content(entry)
    if holder is None:
        return []
    if isinstance(holder.value, Scalar):
        return [(holder, None)] if holder.value.text.startswith('"') else []
    if not isinstance(holder.value, Array):
        return []
    found: list[tuple[Member | Element, int | None]] = []
    for at, part in enumerate(holder.value.elements):
        text = find(part.value, "text")
        if text is not None and text_at(part.value, "type") in _TEXTS:
            found.append((text, at))
        elif isinstance(part.value, Scalar) and part.value.text.startswith('"'):
            found.append((part, at))
    return found


def _edit_message(edit: RequestEdit, one: change.EditMessage) -> None:
    entry = _at(edit, one.position)
    _refuse_uneditable(entry, one.position)
    texts = texts_in(entry)
    if one.part is not None:
        if one.part >= len(texts):
            detail = (
                f"message {one.position} has {len(texts)} texts; part {one.part} is none of them"
            )
            raise NotReplayable(ReplayReason.ITEM_UNKNOWN, detail)
        edit.text.replace(texts[one.part][0], one.text)
        return
    if not texts:
        _give_words(edit, entry, one.text)
        return
    if value_of(texts[0][0].value) == one.text and len(texts) == 1:
        return
    edit.text.replace(texts[0][0], one.text)
    _drop_texts(edit, entry, texts[1:], one.position)


def _refuse_uneditable(entry: _Entry, position: int) -> None:
    kind = entry.kind
    is_result = entry.role in ("tool", "function") or kind in _RESULTS
    blocks = elements_at(entry.node, "content")
    only_results = bool(blocks) and all(_type(one) == "tool_result" for one in blocks)
    if is_result or only_results:
        detail = f"message {position} is the result of a tool: results are recorded, not written"
        raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)
    if kind != "message" and not entry.is_system:
        detail = f"message {position} is an item of type {kind!r}: it has no words of its own"
        raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)


def _type(one: Element) -> str | None:
    return text_at(one.value, "type")


def _drop_texts(
    edit: RequestEdit, entry: _Entry, texts: Sequence[tuple[Any, int | None]], position: int
) -> None:
    """Remove further texts of a message whose words are replaced, and note what went with them."""
    holder = _content(entry)
    if not texts or holder is None or not isinstance(holder.value, Array):
        return
    lost: dict[str, None] = {}
    for _, at in reversed(texts):
        if at is None:
            continue
        part = holder.value.elements[at].value
        lost |= dict.fromkeys(
            one.key for one in (part.members if isinstance(part, Object) else ())
            if one.key not in ("type", "text")
        )  # fmt: skip
        json_edit.remove_at(holder.value, at)
    besides = f", with their {', '.join(lost)}" if lost else ""
    edit.notes.append(
        f"message {position} had {len(texts) + 1} texts: the first has the new words, the others "
        f"were removed{besides}; `part` edits one of them alone"
    )


def _give_words(edit: RequestEdit, entry: _Entry, text: str) -> None:
    """Add words to a message that has none: tool calls or pictures alone."""
    if not text:
        return
    holder = _content(entry)
    if holder is None or not isinstance(holder.value, Array):
        edit.text.set(entry.node, "content", text)
        return
    kind = "text"
    if edit.known.name == RESPONSES:
        kind = "output_text" if entry.role == "assistant" else "input_text"
    parts = holder.value.elements
    calls = (at for at, one in enumerate(parts) if _type(one) == "tool_use")
    at = next(calls, len(parts))
    edit.text.insert(holder.value, at, edit.text.node({"type": kind, "text": text}))


# ---- adding and removing messages


def _add_message(edit: RequestEdit, one: change.AddMessage) -> None:
    found = entries_of(edit)
    position = len(found) if one.position is None else one.position
    if position > len(found):
        _at(edit, position)
    _refuse_parting(found, position)
    has_system = bool(found) and found[0].is_system
    is_head = position <= int(has_system)
    key = edit.known.system
    is_free = not has_system or edit.known.name == MESSAGES  # a list of texts takes another one
    if one.role == "system" and is_head and is_free and key is not None:
        _add_system(edit, key, one.text, is_first=position == 0)
        return
    if has_system and position == 0:
        detail = "the system text comes first: position 1 is right behind it"
        raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)
    before = found[position] if position < len(found) else None
    entries = _entry_array(edit)
    follower = None if before is None else before.at or 0  # None of a text: the first of the list
    at = len(entries.elements) if follower is None else follower
    while follower and at > 0 and _type(entries.elements[at - 1]) == "reasoning":
        at -= 1  # it stays with what it led to
    edit.text.insert(entries, at, edit.text.node({"role": one.role, "content": one.text}))


def _refuse_parting(found: Sequence[_Entry], position: int) -> None:
    before = {one for entry in found[:position] for one in call_ids(entry)}
    after = {one for entry in found[position:] for one in result_ids(entry)}
    if before & after:
        raise NotReplayable(
            ReplayReason.BROKEN_PAIRS, f"a message at {position} would part a call from its result"
        )


def _add_system(edit: RequestEdit, key: str, text: str, *, is_first: bool) -> None:
    member = find(edit.root, key)
    if member is None or not value_of(member.value):
        _set(edit, edit.root, key, text)
        return
    blocks = member.value
    if not isinstance(blocks, Array):
        blocks = edit.text.into_list(member, {"type": "text", "text": ""})
        edit.notes.append(f"{key} was a text and is now a list of texts: the first is as it was")
    at = 0 if is_first else len(blocks.elements)
    edit.text.insert(blocks, at, edit.text.node({"type": "text", "text": text}))


def _entry_array(edit: RequestEdit) -> Array:
    """Return the array of the conversation; a text in its place becomes the first of a list."""
    api = edit.known
    member = find(edit.root, api.entries)
    if member is None:
        _set(edit, edit.root, api.entries, [])
        member = find(edit.root, api.entries)
    assert member is not None
    if isinstance(member.value, Array):
        return member.value
    if not isinstance(member.value, Scalar) or not member.value.text.startswith('"'):
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, f"{api.entries} of the request is no list")
    edit.notes.append(f"{api.entries} was a text and is now a list: its first message is that text")
    return edit.text.into_list(member, {"role": "user", "content": ""})


def call_ids(entry: _Entry) -> list[str]:
    """Return the ids of the tool calls of an entry."""
    if entry.kind in _CALLS:
        found = [text_at(entry.node, "call_id")]
    else:
        found = [text_at(one.value, "id") for one in elements_at(entry.node, "tool_calls")]
        found += [
            text_at(one.value, "id")
            for one in elements_at(entry.node, "content")
            if _type(one) == "tool_use"
        ]
    return [one for one in found if one]


def result_ids(entry: _Entry) -> list[str]:
    """Return the ids of the calls whose results an entry holds."""
    if entry.kind in _RESULTS:
        found = [text_at(entry.node, "call_id")]
    elif entry.role == "tool":
        found = [text_at(entry.node, "tool_call_id")]
    else:
        found = [
            text_at(one.value, "tool_use_id")
            for one in elements_at(entry.node, "content")
            if _type(one) == "tool_result"
        ]
    return [one for one in found if one]


def _remove_message(edit: RequestEdit, position: int) -> None:
    entry = _at(edit, position)
    if entry.is_system:
        assert edit.known.system is not None
        json_edit.remove(edit.root, edit.known.system)
        return
    if entry.at is None:  # the only words there are
        json_edit.remove(edit.root, edit.known.entries)
        return
    calls, results = set(call_ids(entry)), set(result_ids(entry))
    array = _entry_array(edit)
    gone = [entry.at]
    for one in every_entry(edit):
        if one.at is None or one.at == entry.at:
            continue
        if _without_pairs(one, calls=results, results=calls):
            gone.append(one.at)
    reasoning = _reasoning_before(array, gone)
    for at in sorted({*gone, *reasoning}, reverse=True):
        json_edit.remove_at(array, at)
    if calls:
        edit.notes.append(f"message {position} was removed with the results of its tool calls")
    if results:
        edit.notes.append(f"message {position} was removed with the tool calls it answers")
    if reasoning:
        edit.notes.append(f"message {position} was removed with the reasoning that led to it")


def _without_pairs(entry: _Entry, *, calls: set[str], results: set[str]) -> bool:
    """Take the other half of what is removed out of an entry; returns whether nothing is left."""
    node = entry.node
    if entry.kind in _CALLS:
        return text_at(node, "call_id") in calls
    if entry.kind in _RESULTS or entry.role == "tool":
        return bool(set(result_ids(entry)) & results)
    for key, kind, ids, name in (
        ("tool_calls", None, calls, "id"),
        ("content", "tool_use", calls, "id"),
        ("content", "tool_result", results, "tool_use_id"),
    ):
        member = find(node, key)
        if member is None or not isinstance(member.value, Array):
            continue
        before = len(member.value.elements)
        for at in range(before - 1, -1, -1):
            one = member.value.elements[at]
            if (kind is None or _type(one) == kind) and text_at(one.value, name) in ids:
                json_edit.remove_at(member.value, at)
        left = [one for one in member.value.elements if _type(one) not in _THINKING]
        if len(member.value.elements) < before and not left:
            if key == "content":
                return True
            json_edit.remove(node, key)
            content = find(node, "content")
            if content is None or not value_of(content.value):
                return True
    return False


def _reasoning_before(array: Array, gone: Sequence[int]) -> list[int]:
    """Return the reasoning items that led to what goes: the API refuses them without it."""
    found = []
    for at in gone:
        before = at - 1
        while before >= 0 and _type(array.elements[before]) == "reasoning":
            found.append(before)
            before -= 1
    return found


# ---- tools


def tool_name(value: Any) -> str | None:
    """Return the name that a tool goes by: its own, or of a hosted one its label or type."""
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function") or value.get("custom")
    named = inner if isinstance(inner, Mapping) else value
    name = named.get("name") or value.get("server_label") or value.get("mcp_server_name")
    return str(name or value.get("type") or "") or None


def _remove_tool(edit: RequestEdit, name: str) -> None:
    member = find(edit.root, "tools")
    tools = member.value if member is not None else None
    found = [
        at
        for at, one in enumerate(tools.elements if isinstance(tools, Array) else ())
        if tool_name(value_of(one.value)) == name
    ]
    if not found or not isinstance(tools, Array):
        raise NotReplayable(ReplayReason.ITEM_UNKNOWN, f"no tool {name!r} was on offer")
    used = [str(at) for at, entry in enumerate(entries_of(edit)) if name in called_names(entry)]
    if used:
        detail = f"{name!r} was called in message {', '.join(used)}: remove those first"
        raise NotReplayable(ReplayReason.BROKEN_PAIRS, detail)
    _refuse_forced(edit, name)
    for at in reversed(found):
        json_edit.remove_at(tools, at)
    if tools.elements:
        return
    gone = ["tools"]
    if edit.known.choice_needs_tools:
        gone += [one for one in ("tool_choice", "parallel_tool_calls") if find(edit.root, one)]
    for key in gone:
        json_edit.remove(edit.root, key)
    edit.notes.append(f"no tool is left: {', '.join(gone)} went, which the API refuses without one")


def _refuse_forced(edit: RequestEdit, name: str) -> None:
    """Refuse to remove a tool that `tool_choice` names."""
    choice = find(edit.root, "tool_choice")
    if choice is None or not isinstance(choice.value, Object):
        return
    named = {value_of(one.value) for one in json_edit.every_member(choice.value)
             if one.key == "name" and isinstance(one.value, Scalar)}  # fmt: skip
    if name in named:
        detail = f"tool_choice of the request names {name!r}, so it cannot be taken off the list"
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, detail)


def called_names(entry: _Entry) -> set[str]:
    """Return the names of the tools that an entry calls."""
    if entry.kind in _CALLS:
        return {text_at(entry.node, "name") or ""}
    names = set()
    for one in elements_at(entry.node, "tool_calls"):
        for key in ("function", "custom"):
            inner = find(one.value, key)
            names.add(text_at(inner.value, "name") if inner is not None else None)
    names |= {
        text_at(one.value, "name")
        for one in elements_at(entry.node, "content")
        if _type(one) == "tool_use"
    }
    return {one for one in names if one}


# ---- what was said in an earlier turn of a fork


def with_words(
    data: bytes, path: str, *, calls: Sequence[str], before: str, after: str
) -> bytes | None:
    """Return a later request with a response's new words in place of the recorded ones.

    The answer is the last entry that makes the `calls` and says `before`, else the last that does
    one of both: servers give several calls one id. None where it is not in the request.
    """
    edit = opened(data, path)
    found = [one for one in every_entry(edit) if one.role == "assistant" and one.kind == "message"]
    says = [one for one in found if _text_of(one) == before]
    makes = [one for one in found if calls and set(calls) <= set(call_ids(one))]
    both = [one for one in says if one in makes]
    for entry in (*reversed(both), *reversed(makes), *reversed(says)):
        texts = texts_in(entry)
        if texts:
            edit.text.replace(texts[0][0], after)
        else:
            _give_words(edit, entry, after)
        return edit.text.bytes()
    return None


def _text_of(entry: _Entry) -> str:
    return "\n".join(str(value_of(one.value)) for one, _ in texts_in(entry))

"""A stored compile made again with changes, and as it was, to compare the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import apsw

from hansard._context.compiled_step import CompiledStep
from hansard_collector.derivation.compilations import read_result
from hansard_compiler.calls import Message, TextPart, message_from_json, message_json
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.errors import CompileError
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import recorded_request
from hansard_compiler.diff.sides import CompileSide, side_of_context, side_of_result
from hansard_compiler.errors import HansardError
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.rules import parse_rules
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.replay import mutations as change
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.requests import item_of_message, mutate_request, with_text
from hansard_compiler.replay.turns import says_the_same, with_answer
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.compilations.queries import Compilation
from hansard_store.errors import StoreCorruptError
from hansard_web.replay.source import ReplayedStep, stored_bytes

_ON_MESSAGES: Final = (change.EditMessage, change.RemoveMessage, change.AddMessage)
_KINDS: Final = {"system": "system", "user": "user_msg", "assistant": "assistant_msg"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """The model's output in an earlier turn of a fork, in place of the recorded one."""

    recorded: tuple[Message, ...]
    found: tuple[Message, ...]

    @property
    def is_same(self) -> bool:
        return says_the_same(self.recorded, self.found)


Past: TypeAlias = tuple[Spoken, ...]  # the earlier turns of a fork


@dataclass(frozen=True, slots=True)
class Remade:
    """A compile with changes, beside the one it started from."""

    result: CompileResult
    ports: Ports  # without the rules of the request
    checks: Sequence[Any]
    before: CompileSide
    notes: tuple[str, ...] = ()
    unchanged: CompileResult | None = None  # the stored request compiled again as it was
    step: CompiledStep | None = None  # once it is recorded

    @property
    def after(self) -> CompileSide:
        return side_of_result(self.result)


def stored_request(connection: apsw.Connection, source: ReplayedStep) -> CompilationRequest:
    """Return the compile request of a step; raises NotReplayable where it cannot be read."""
    found = source.compilation
    if found is None or found.row.request_ref is None:
        raise NotReplayable(ReplayReason.NO_COMPILATION)
    data = stored_bytes(connection, found.row.request_ref)
    try:
        return recorded_request(data)
    except (HansardError, ValueError) as error:
        raise NotReplayable(
            ReplayReason.RECIPE_UNREADABLE, f"its compile request: {error}"
        ) from None


def remake(
    connection: apsw.Connection,
    source: ReplayedStep,
    mutations: Sequence[change.Mutation],
    *,
    redactor: Redactor,
    policy: Policy | None,
    past: Past | None = None,
) -> Remade:
    """Compile again with changes. Raises NotReplayable.

    After turns that were replayed, their new words take the place of the recorded ones, and a
    change of what is not there any more is passed over.
    """
    request = stored_request(connection, source)
    found = source.compilation
    assert found is not None
    compiler = Recompiler(found, redactor, policy)
    before, unchanged, notes = _before(connection, found, request, compiler)
    for number, one in enumerate(mutations, 1):
        try:
            request = compiler.changed(request, one, number=number)
        except NotReplayable as why:
            if past is None or why.reason is not ReplayReason.ITEM_UNKNOWN:
                raise
    for spoken in past or ():
        request = compiler.with_words(request, spoken)
    result = compiler.compiled(request)
    if not any(message["parts"] for message in result.payload["messages"]):
        raise NotReplayable(ReplayReason.CONTEXT_EMPTY)
    checks = compiler.decider.checks if compiler.decider else []
    return Remade(
        result, compiler.ports, checks, before, (*notes, *compiler.notes), unchanged=unchanged
    )


class Recompiler:
    """Compiles the request of one replay, however often its changes need it."""

    def __init__(self, found: Compilation, redactor: Redactor, policy: Policy | None) -> None:
        self._redactor = redactor
        self._policy = policy
        self._ports = found.row.ports.split(",") if found.row.ports else []
        self.decider: RuleDecider | None = None
        self.ports = Ports(counter=estimator_for("", ""), redactor=redactor)
        self.notes = [
            f"the program gave the compile a {name} of its own, which is not stored: the built-in "
            "one was used"
            for name in self._ports
            if name in ("relevance", "compressor")
        ]
        if "policy" in self._ports:
            self.notes.append(
                "the rules of the compile did not travel with its request: those in force now "
                "were used"
                if policy is not None
                else "the rules of the compile did not travel with its request, and none are in "
                "force here: nothing was denied"
            )

    def changed(
        self, request: CompilationRequest, one: change.Mutation, *, number: int
    ) -> CompilationRequest:
        if isinstance(one, change.SetPolicy):
            self._policy = None
            self.notes = [note for note in self.notes if "the rules of the compile" not in note]
        if isinstance(one, _ON_MESSAGES):
            one = self._about_item(request, one, number)
        return mutate_request(request, [one])

    def _about_item(self, request: CompilationRequest, one: Any, number: int) -> change.Mutation:
        """Return a change of a message as one of the item that is the message."""
        if isinstance(one, change.EditMessage) and one.part is not None:
            detail = f"change {number}: `part` is of recorded messages; edit the item of a compile"
            raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)
        if isinstance(one, change.AddMessage):
            item = {"kind": _KINDS[one.role], "content": one.text, "id": f"replay:{number}"}
            return change.AddItem(op="add_item", item=item, position=one.position)
        sections = self.compiled(request).state.sections
        item_id = item_of_message(sections, one.position)
        if item_id is None:
            raise NotReplayable(
                ReplayReason.MUTATION_INVALID,
                f"change {number}: message {one.position} is made of several items; name the item",
            )
        if isinstance(one, change.RemoveMessage):
            return change.RemoveItem(op="remove_item", item_id=item_id)
        content = next(item.content for item in request.context_items if item.id == item_id)
        return change.EditItem(
            op="edit_item", item_id=item_id, content=with_text(content, one.text)
        )

    def with_words(self, request: CompilationRequest, spoken: Spoken) -> CompilationRequest:
        """Put the words of an earlier turn in the place of the recorded ones, if they are there."""
        if spoken.is_same:
            return request
        hashes = {one.match_hash for one in spoken.recorded}
        for item in request.context_items:
            message = _message_of(item.content) if item.kind == "assistant_msg" else None
            if message is None or message.match_hash not in hashes:
                continue
            [new, *_] = with_answer([message], [message], spoken.found) or [message]
            edit = change.EditItem(op="edit_item", item_id=item.id, content=message_json(new))
            return mutate_request(request, [edit])
        self.notes.append("the words of an earlier turn are no item here: the recorded ones stay")
        return request

    def compiled(self, request: CompilationRequest) -> CompileResult:
        """Compile; raises NotReplayable with what the compiler says."""
        counter = estimator_for(request.provider, request.model)
        self.ports = Ports(counter=counter, redactor=self._redactor)
        self.decider = self._decider(request)
        try:
            return compile_context(request, replace(self.ports, policy=self.decider))
        except (CompileError, PolicyRuleError) as error:
            raise NotReplayable(ReplayReason.COMPILE_FAILED, str(error), code=error.code) from None

    def _decider(self, request: CompilationRequest) -> RuleDecider | None:
        if request.policy_rules:
            rules = [rule.model_dump() for rule in request.policy_rules]
            return RuleDecider(Policy(rules=parse_rules(rules)))
        if self._policy is not None and "policy" in self._ports:
            return RuleDecider(self._policy)
        return None


def _message_of(content: Any) -> Message | None:
    """Return the message that an item of the conversation is."""
    try:
        if isinstance(content, str):
            return Message("assistant", (TextPart(content),))
        return message_from_json({"role": "assistant", **content})
    except (KeyError, TypeError):
        return None


def _before(
    connection: apsw.Connection,
    found: Compilation,
    request: CompilationRequest,
    compiler: Recompiler,
) -> tuple[CompileSide, CompileResult | None, list[str]]:
    """Return the original compile as it was stored, what compiling it again gives, and notes."""
    notes = []
    try:
        again = compiler.compiled(request)
        if again.compile_hash != found.row.hash:
            notes.append(
                "compiled again without changes the original comes out otherwise (another version, "
                "counter or key, or secrets cut out): not every difference is due to the changes"
            )
    except NotReplayable as why:
        notes.append(f"the original cannot be compiled again: {why.detail}")
        again = None
    context = _stored_result(connection, found)
    if context is not None:
        return side_of_context(context, request=request), again, notes
    if again is None:
        raise NotReplayable(ReplayReason.NO_COMPILATION, "its result is not stored")
    return side_of_result(again), again, notes


def _stored_result(connection: apsw.Connection, found: Compilation) -> Any:
    try:
        return read_result(connection, found.row.result_ref) if found.row.result_ref else None
    except StoreCorruptError:
        return None

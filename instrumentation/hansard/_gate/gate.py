"""The gate: where calls of tools run, wait for a decision, or are refused.

with hansard.gate(agent="clerk", tools=[find_contact, create_contact]) as gate:
    gate.call("find_contact", {"name": "Maria"})       # Completed: an event before and after
    gate.call("create_contact", {"name": "Maria"})     # Pending: its approval_id, a message
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from hansard._backend import backend_of_this_process
from hansard._backend.protocol import Decisions, refuse_async
from hansard._decorators import capture
from hansard._decorators.decorators import decorated, with_metadata_of, with_span
from hansard._gate import execution, invocation
from hansard._gate.flow import adrive, begin, drive
from hansard._gate.pending import PendingTurn, Waiting, current_turn
from hansard._gate.provenance import SeenValues
from hansard._gate.tools import MARK, GatedTool, ToolSet, find_registered, make_tool, register
from hansard._runtime import recorder as _state
from hansard._runtime.durations import Duration, seconds
from hansard._tracing.context import EnteredEitherWay, current_agent
from hansard.errors import NoConfirmation
from hansard.results import Executed, GateResult

if TYPE_CHECKING:
    from hansard._context.policies import PolicyLike
    from hansard_compiler.policy.engine import Policy

Tools: TypeAlias = ToolSet | Iterable[Callable[..., Any] | GatedTool]
# The gates that were entered here, the innermost last: one gate may be entered in many threads.
_entered: ContextVar[tuple[Gate, ...]] = ContextVar("hansard-gates", default=())
_batch: ContextVar[str | None] = ContextVar("hansard-batch", default=None)


class Gate(EnteredEitherWay):
    """The way of calls to their tools; as a `with` block the current gate of this task.

    `tools` are the tools that `call` finds by name. The rules of `policy` apply first: deny refuses
    a call, require_approval holds a tool that only reads, too. A decision may take `expires_in_s`
    (the store's default is an hour). A call waits `wait_s` for it: `math.inf` until the approval
    expires, 0 returns `Pending` at once; None leaves it to the tool. Both are seconds or a
    timedelta. `approvers` names the people who may decide; without it everybody with the right to
    decide may. `approvals_required` is how many different people have to approve the same draft
    before the call runs.
    """

    __module__ = "hansard"  # where programs find it

    def __init__(
        self,
        *,
        tools: Tools = (),
        agent: str | None = None,
        channel: str | None = None,
        one_per_channel: bool = False,
        approvers: Sequence[str] = (),
        approvals_required: int = 1,
        expires_in_s: Duration | None = None,
        wait_s: Duration | None = None,
        policy: PolicyLike | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        if decisions is not None:
            refuse_async(decisions)
        self.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        self.channel = channel
        self.one_per_channel = one_per_channel
        self.approvers = tuple(approvers)
        self.approvals_required = approvals_required
        self.expires_in_s = None if expires_in_s is None else seconds(expires_in_s, "expires_in_s")
        self.wait_s = None if wait_s is None else seconds(wait_s, "wait_s")
        self.seen = SeenValues()
        self.receipts: list[str] = []  # compilations that later calls came from
        self.waiting = _waiting
        self._agent = agent
        self._policy: Policy | None = None
        if policy is not None:
            from hansard._context.policies import policy_of

            self._policy = policy_of(policy)[1]
        self._decisions = decisions

    def with_tools(self, tools: Tools) -> Gate:
        """Return a gate with the options of this one, for other tools."""
        other = copy.copy(self)
        other.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        other.seen, other.receipts = SeenValues(), []
        return other

    @property
    def agent(self) -> str | None:
        """The agent of the calls: as set, else the innermost decorated one or that of the run."""
        return self._agent or current_agent()

    @property
    def policy(self) -> Policy | None:
        return self._policy

    @property
    def decisions(self) -> Decisions:
        """The store of approvals. Raises GateUnavailable if it cannot be reached."""
        if self._decisions is not None:
            return self._decisions
        return backend_of_this_process().decisions

    # ---- calls

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, repropose: str | None = None
    ) -> GateResult:
        """Call a tool of the set, and return the state of the call. Raises CallRefused.

        `for_model()` of the result is the answer for the model: see `hansard.results`.
        An async tool runs in an event loop of this call; AwaitRequired inside a running one.
        `repropose` is the id of an approval that was sent back with a note: this call is its new
        draft.
        """
        tool = self.tools.get(name)
        named = tool.shape.from_model({} if arguments is None else arguments)
        return drive(invocation.call(self, tool, named, repropose=repropose))

    async def acall(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, repropose: str | None = None
    ) -> GateResult:
        """The same in an event loop, for tools of both kinds."""
        tool = self.tools.get(name)
        named = tool.shape.from_model({} if arguments is None else arguments)
        return await adrive(invocation.call(self, tool, named, repropose=repropose))

    def run(self, approval_id: str, *, instance: Any = None) -> Executed:
        """Claim and run an approved call, once: see `hansard.approvals.run`."""
        return drive(execution.run(self, approval_id, instance=instance))

    async def arun(self, approval_id: str, *, instance: Any = None) -> Executed:
        """The same in an event loop."""
        return await adrive(execution.run(self, approval_id, instance=instance))

    def find_tool(self, name: str) -> GatedTool | None:
        """Return a tool by its exact name: of this set, else the one decorated tool called so."""
        return self.tools.find(name) or find_registered(name)

    # ---- the agent's context

    def note(self, *shown: Any) -> None:
        """Note what the agent was shown: messages, documents, compiled contexts.

        An argument that none of it contains is marked for the approver. The gate notes the results
        of its own tools.
        """
        for one in shown:
            payload = getattr(one, "payload", None)  # of a CompiledStep
            if isinstance(payload, Mapping):
                self.receipts.append(f"compilation:{getattr(one, 'id', '')}")
                self.seen.add(payload)
            else:
                self.seen.add(one)

    def turn(self) -> AbstractContextManager[PendingTurn]:
        """Collect the pending calls of one turn of an agent."""
        return current_turn()

    @contextmanager
    def batch(self) -> Iterator[str]:
        """Have the calls of a block decided together; each can still be taken off the list."""
        made = secrets.token_hex(16)
        token = _batch.set(made)
        try:
            yield made
        finally:
            _batch.reset(token)

    @property
    def batch_id(self) -> str | None:
        """The batch that calls join here; None outside a batch."""
        return _batch.get()

    # ---- the current gate

    def __enter__(self) -> Self:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])


gate = Gate  # programs write `with hansard.gate(…)`


def current_gate() -> Gate | None:
    """Return the gate for calls here: the innermost entered one, else that of `hansard.init()`."""
    entered = _entered.get()
    if entered:
        return entered[-1]
    return None if _state.settings() is None else _default


def gate_for(tool: GatedTool) -> Gate | None:
    """Return the gate for a decorated tool; None where a reading one runs without any.

    Raises NoConfirmation for one that writes.
    """
    found = current_gate()
    if found is None and tool.effect == "write":
        raise NoConfirmation(tool.name)
    return found


_waiting = Waiting()
_default = Gate()


def gate_tool(effect: str, options: dict[str, Any], gating: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the decorator for tools of this effect."""
    return partial(decorated, "tool", partial(_wrapped, effect, options, gating))


def _wrapped(
    effect: str,
    options: dict[str, Any],
    gating: dict[str, Any],
    function: Callable[..., Any],
    *,
    receives: bool | None,
) -> Callable[..., Any]:
    plan = capture.tool_plan(function, receives=receives, **options)
    name = options["name"] or capture.name_of(function)
    tool = make_tool(function, plan, name=name, effect=effect, **gating)
    register(tool)
    # Where no gate is, a tool that reads is observed like any other.
    observed = with_span(function, plan)
    wrapper = with_metadata_of((_async if tool.is_async else _plain)(tool, observed), function)
    setattr(wrapper, MARK, tool)
    return wrapper


def _plain(tool: GatedTool, observed: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gate = gate_for(tool)
        if gate is None:
            return observed(*args, **kwargs)
        bound, arguments = tool.called_with(args, kwargs)
        # A plain function may return an awaitable: then so does this, and the rest is awaited.
        return begin(invocation.answer(gate, bound, arguments))

    return wrapper


def _async(tool: GatedTool, observed: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        gate = gate_for(tool)
        if gate is None:
            return await observed(*args, **kwargs)
        bound, arguments = tool.called_with(args, kwargs)
        return await adrive(invocation.answer(gate, bound, arguments))

    return wrapper

"""Compiling the context of one model call, with a receipt for every candidate.

    with run.step("answer") as step:
        compiled = run.compile_step(
            [system, *conversation, *files],
            model="gpt-6-luna", provider="openai", token_budget=8_000, response_reserve=1_000,
        )
        print(compiled.why("docs/large.md"))
        answer = run.call_model(compiled)

This is a function of the program and not only watched: a context that cannot be compiled raises.
Recording it fails open, as everywhere; without `hansard.init()` nothing is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Required, TypedDict, Unpack
from uuid import uuid4

from opentelemetry.trace import get_current_span

from hansard._context.compile_span import CompileSpan
from hansard._context.compiled_step import CompiledStep
from hansard._context.policies import PolicyLike, policy_of
from hansard._runs.run import Run, context_of, current_run
from hansard._runtime.recorder import active
from hansard._tracing.context import address_of, current_context, entered
from hansard.errors import refuse_async
from hansard_compiler.compile.config import CompileConfig
from hansard_compiler.compile.config import Relevance as RelevanceSettings
from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.errors import CompileProblem, InvalidInput
from hansard_compiler.compile.models import Json, MemoryRecord, parse
from hansard_compiler.compile.ports import Compressor, Ports, RelevancePort, TokenCounter
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from hansard._runs.step import Step
    from hansard._runtime.recorder import Recorder
    from hansard.memory import Remembered
    from hansard_compiler.providers.adapter import Adapter


_NEEDED: Final = frozenset({"model", "provider", "token_budget"})


class CompileOptions(TypedDict, total=False):
    """How to compile; `compile_step` documents each."""

    model: Required[str]
    provider: Required[str | Adapter]
    token_budget: Required[int]
    response_reserve: int
    tools: Iterable[Mapping[str, Any]]
    memory: Iterable[MemoryRecord | Mapping[str, Any] | Remembered]
    policy: PolicyLike | None
    config: CompileConfig | Mapping[str, Any] | None
    task_summary: str
    now: datetime | str | None
    previous: CompiledStep | None
    counter: TokenCounter | None
    relevance: RelevancePort | str | None
    compressor: Compressor | None


def compile_step(
    run_id: Run | str | None = None,
    step_id: Step | str | None = None,
    inputs: Iterable[Any] = (),
    **options: Unpack[CompileOptions],
) -> CompiledStep:
    """Choose, shorten and lay out the context of one model call. Raises CompileError.

    Run and step are objects or ids, of this process or another; left out, the current ones. The
    inputs are context items, messages, texts or paths, in the order of the conversation.

    `provider` is a name or an adapter. `token_budget` is for all that is sent and for the answer,
    of which `response_reserve` stays free. `tools` are definitions, `memory` records. `policy` is a
    Policy, rule sets, names of shipped ones, or rules; rules travel with the request. `now` is the
    time that freshness counts from; left out, the clock's. With the `previous` compile of the same
    conversation items are not swapped for a small gain, which keeps the provider's cache.
    `relevance` is the name of a scorer (`pieces`, `embeddings`, `bm25`) or a function of one's own.
    `counter`, such a function and `compressor` replace what is built in.
    """
    if isinstance(run_id, Iterable) and not isinstance(run_id, str):
        raise TypeError("compile_step(run_id, step_id, inputs): pass the inputs by name")
    run = run_id if isinstance(run_id, Run) else current_run()
    with entered(context_of(run_id, step_id)):
        compiling = _Compiling(run, run_id, step_id, list(inputs), options, active())
        return compiling.compiled()


def compile_into(
    recorder: Recorder,
    run_id: str,
    step_id: str,
    inputs: Iterable[Any],
    **options: Unpack[CompileOptions],
) -> CompiledStep:
    """Compile for a step of another program, and let this recorder keep it: see `compile_step`."""
    with entered(context_of(run_id, step_id)):
        return _Compiling(None, run_id, step_id, list(inputs), options, recorder).compiled()


class _Compiling:
    """One compile: the request to the compiler, and the span around it."""

    def __init__(
        self,
        run: Run | None,
        run_id: Run | str | None,
        step_id: Step | str | None,
        inputs: Sequence[Any],
        options: CompileOptions,
        recorder: Recorder | None,
    ) -> None:
        self._run = run
        self._named = run_id, step_id
        self._inputs = inputs
        self._options = options
        self._recorder = recorder
        self._span = CompileSpan.begin(self._recorder)

    def compiled(self) -> CompiledStep:
        decider: RuleDecider | None = None
        context = current_context()
        try:
            with self._span.running():
                _check_names(self._options)
                rules: list[Json] | None = None
                if (value := self._options.get("policy")) is not None:
                    rules, policy = policy_of(value)
                    decider = RuleDecider(policy)
                ports = self._ports(decider if rules is None else None)
                request = self._request(context, rules or [])
                result = compile_context(request, replace(ports, policy=decider))
        except BaseException as error:
            self._span.fail(error, checks=decider.checks if decider else ())
            raise
        checks = decider.checks if decider else []
        recorded = self._span.keep(result, ports, checks=checks)
        adapter = self._options["provider"]
        return CompiledStep(
            result,
            checks=checks,
            adapter=None if isinstance(adapter, str) else adapter,
            context=context,
            recorded=recorded,
        )

    def _ports(self, policy: RuleDecider | None) -> Ports:
        options, recorder = self._options, self._recorder
        counter, relevance = options.get("counter"), options.get("relevance")
        for name in ("relevance", "compressor"):
            refuse_async(f"{name}=", options.get(name))
        refuse_async("counter=", getattr(counter, "count", None))
        return Ports(
            counter=counter or estimator_for(_name_of(options["provider"]), options["model"]),
            redactor=_own_redactor() if recorder is None else recorder.redactor,
            policy=policy,
            relevance=None if isinstance(relevance, str) else relevance,
            compressor=options.get("compressor"),
        )

    def _request(self, context: Context, rules: list[Json]) -> Json:
        options, now = self._options, self._options.get("now") or datetime.now(UTC)
        run_id, step_id = self._ids(context)
        return {
            "request_id": self._span.step_id or uuid4().hex,
            "run_id": run_id,
            "step_id": step_id,
            "provider": _name_of(options["provider"]),
            "model": options["model"],
            "now": now,
            "task_summary": options.get("task_summary", ""),
            "context_items": [_dated(item, now) for item in self._inputs],
            "tool_specs": [dict(tool) for tool in options.get("tools", ())],
            "memory_records": [getattr(one, "record", one) for one in options.get("memory", ())],
            "policy_rules": rules,
            "token_budget": options["token_budget"],
            "response_reserve": options.get("response_reserve", 0),
            "compile_config": self._config(),
        }

    def _ids(self, context: Context) -> tuple[str, str]:
        """Return the ids of run and step: as named, else those of the current span."""
        named = [one if isinstance(one, str) else None for one in self._named]
        found = (
            address_of(get_current_span(context))
            or self._span.address
            or ("unrecorded", "unrecorded")
        )
        run_id, step_id = (mine or theirs for mine, theirs in zip(named, found, strict=True))
        return run_id, step_id

    def _config(self) -> CompileConfig:
        value = self._options.get("config") or {}
        config = value if isinstance(value, CompileConfig) else parse(CompileConfig, value)
        more: dict[str, Any] = {}
        if config.agent is None and self._run is not None:
            more["agent"] = self._run.agent_name
        scorer = self._options.get("relevance")
        if isinstance(scorer, str):
            settings = {**config.relevance.model_dump(), "scorer": scorer}
            more["relevance"] = parse(RelevanceSettings, settings)
        recalled = getattr(self._options.get("memory"), "scope", None)
        if recalled:  # what was read for a project is compiled for it
            more["scope"] = {**recalled, **config.scope}
        previous = self._options.get("previous")
        if previous is not None and not config.previous_selected:
            more["previous_selected"] = previous.selected
        return config.model_copy(update=more) if more else config


def _check_names(options: Mapping[str, Any]) -> None:
    """Raise InvalidInput where a needed option is missing, or one has a name that is not known."""
    missing = sorted(_NEEDED - options.keys())
    unknown = sorted(options.keys() - CompileOptions.__annotations__.keys())
    problems = [CompileProblem(name, "is missing") for name in missing]
    problems += [CompileProblem(name, "is no option of compile_step") for name in unknown]
    if problems:
        raise InvalidInput("the options of compile_step", problems)


def _dated(item: Any, now: datetime | str) -> Any:
    """Return an input; a context item without a time of creation is of this moment."""
    if isinstance(item, Mapping) and item.get("kind") and "created_at" not in item:
        return {**item, "created_at": now}
    return item


def _name_of(provider: str | Adapter) -> str:
    return provider if isinstance(provider, str) else provider.provider


@lru_cache(maxsize=1)
def _own_redactor() -> Redactor:
    """Return a redactor for a program that records nothing; its key is this process's alone."""
    return Redactor(os.urandom(32))

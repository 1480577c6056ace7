"""The tools, in the order that clients list them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_web.mcp import arguments as given
from hansard_web.mcp import read_tools as reading
from hansard_web.mcp import write_tools as changing
from hansard_web.mcp.api_client import Api

_GATED: Final = (
    " Nothing runs at once: it answers `pending_confirmation`, and runs when a person has approved "
    "and it is called again with the same arguments and `confirmation`."
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its words for the model, what it takes, what it does."""

    name: str
    title: str
    description: str
    takes: type[given.Arguments]
    do: Callable[[Api, Any], Awaitable[Json]]
    reads_only: bool = True


TOOLS: Final = (
    Tool("search_memory", "Search memory",
         "Read what agents are to know: facts, preferences, constraints, decisions, best answers "
         "first. The read is recorded.", given.SearchMemory, reading.search_memory),
    Tool("find_receipts", "Find context receipts",
         "Find what compiles did with pieces of context, over all runs: included, excluded, "
         "compressed or redacted, why, and what it missed by.",
         given.FindReceipts, reading.find_receipts),
    Tool("explain_item", "Why was an item in or out of a step",
         "Tell what one model call knew, and for one item (or all) why it was in the prompt or "
         "was not.", given.ExplainItem, reading.explain_item),
    Tool("search_text", "Search everything that was said",
         "Full text search over messages, arguments, results and errors of all runs.",
         given.SearchText, reading.search_text),
    Tool("list_runs", "List runs", "List runs of agents, narrowed by what you give.",
         given.ListRuns, reading.list_runs),
    Tool("get_run", "Get a run", "Totals, models, tokens, cost and status of one run.",
         given.OfRun, reading.get_run),
    Tool("list_steps", "List the steps of a run", "The steps of a run as a tree, without content.",
         given.ListSteps, reading.list_steps),
    Tool("get_step", "Get a step",
         "One step whole: model call, tool call, attributes, context, receipts, payloads.",
         given.OfStep, reading.get_step),
    Tool("diff", "Compare two runs or two steps",
         "Compare two steps or two runs: what differs in input, context, output, tokens and cost, "
         "and what caused it.", given.Diff, reading.diff),
    Tool("check_policy", "Check policy",
         "Tell what the rules say of a tool call or of an item, and how each rule came out. A dry "
         "run: nothing is recorded and nothing is permitted by it.",
         given.CheckPolicy, reading.check_policy),
    Tool("replay", "Replay a model call",
         "Make a recorded model call again, exactly or with changes. With `preview` or `recorded` "
         "nothing is sent. With `live` a fork goes on past the recording, within bounds. What is "
         "sent goes through the gate." + _GATED,
         given.Replay, changing.replay, reads_only=False),
    Tool("continue_replay", "Go on with a fork",
         "Have a replay that stopped go on live, past the recording: the model is asked turn by "
         "turn, within bounds. What its `continuation` needs a result for and has none is given in "
         "`results`; no tool is run." + _GATED,
         given.ContinueReplay, changing.continue_replay, reads_only=False),
    Tool("get_replay", "Get a replay", "State, result and comparison of a replay.",
         given.GetReplay, reading.get_replay),
    Tool("get_payload", "Summarise an artifact",
         "Media type, size, digest and beginning of a payload by its sha256 reference.",
         given.GetPayload, reading.get_payload),
    Tool("list_transcripts", "List transcripts", "List recorded conversations.",
         given.ListTranscripts, reading.list_transcripts),
    Tool("get_transcript", "Get a transcript", "Read a conversation: messages, folds, marks.",
         given.GetTranscript, reading.get_transcript),
    Tool("list_approvals", "List approvals",
         "List actions that wait for a person, or were decided. Only people decide.",
         given.ListApprovals, reading.list_approvals),
    Tool("get_approval", "Get an approval",
         "One approval with its drafts; `wait_s` waits for the decision of a person.",
         given.GetApproval, reading.get_approval),
    Tool("query_sql", "Query with SQL",
         "Answer one SELECT (SQLite) over documented views. Ids are hex, times nanoseconds since "
         "1970, money billionths of a US dollar.", given.QuerySql, reading.query_sql),
    Tool("remember_fact", "Write memory",
         "Write a fact, preference, constraint or decision into durable memory." + _GATED,
         given.RememberFact, changing.remember_fact, reads_only=False),
    Tool("invalidate_memory", "Take memory back",
         "Say that a memory does not hold; it is read no more and stays with the reason." + _GATED,
         given.InvalidateMemory, changing.invalidate_memory, reads_only=False),
)  # fmt: skip
BY_NAME: Final = {tool.name: tool for tool in TOOLS}

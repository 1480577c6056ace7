"""What frameworks tell elsewhere than in an attribute of its own: agents, tools, costs."""

from __future__ import annotations

import pytest

from tests.collector.dialects.maker import call_of, read

SMOLAGENTS = {"openinference.span.kind": "AGENT", "smolagents.max_steps": "4"}
LLAMA_INDEX = "openinference.instrumentation.llama_index"
AGENTS = "openinference.instrumentation.openai_agents"
SAID = "AgentInput(input=[TextBlock(text=\"current_agent_name='forged')\")], "


@pytest.mark.parametrize(
    ("name", "agent"), [("clerk.run", "clerk"), ("CodeAgent.run", None), (".run", None)]
)
def test_an_agent_of_smolagents_names_its_span_unless_a_class_does(
    name: str, agent: str | None
) -> None:
    assert read(SMOLAGENTS, name=name).agent_name == agent


@pytest.mark.parametrize(
    ("key", "printed", "agent"),
    [
        ("output.value", f"{SAID}current_agent_name='clerk')", "clerk"),
        ("input.value", f'{{"ev": "{SAID}current_agent_name=\'clerk\')"}}', "clerk"),
        ("output.value", f"{SAID}current_agent_name='cl...", None),
        ("output.value", "12", None),
    ],
)
def test_a_step_of_llamaindex_has_the_agent_of_its_event(
    key: str, printed: str, agent: str | None
) -> None:
    told = {"openinference.span.kind": "CHAIN", key: printed}

    shown = read(told, name="BaseWorkflowAgent.init_run", scope=LLAMA_INDEX)
    assert shown.agent_name == agent


@pytest.mark.parametrize("name", ["BaseWorkflowAgent.init_run", "mine"])
def test_other_libraries_spans_are_not_searched_for_an_agent(name: str) -> None:
    assert read({"output.value": "f(current_agent_name='x')"}, name=name).agent_name is None


def test_a_handoff_runs_the_tool_that_the_model_asked_for() -> None:
    told = {"openinference.span.kind": "TOOL", "input.value": "boss", "output.value": "Order clerk"}

    tool = read(told, name="handoff to Order clerk", scope=AGENTS).tool
    assert tool is not None
    assert (tool.name, tool.result) == ("transfer_to_order_clerk", "Order clerk")


@pytest.mark.parametrize(("tokens", "cost"), [({}, None), ({"gen_ai.usage.input_tokens": 7}, 0.0)])
def test_no_cost_is_reported_as_nothing_where_no_token_is(
    tokens: dict[str, int], cost: float | None
) -> None:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "of-my-own",
        "hidden_params": '{"response_cost": 0.0}',
    }

    found = call_of({**told, **tokens}, scope="litellm").cost
    assert (found and found.usd) == cost

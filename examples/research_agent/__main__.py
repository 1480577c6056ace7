"""A research agent over sources that contradict each other: which one it believes, and why.

    hansard serve &
    python examples/research_agent                        # or with --embedded, without a server
    python examples/research_agent --provider openai --model gpt-…    # a model of yours

No key is needed: the model answers from a script. docs/walkthrough-research.md says what to see.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import citations
import library

import hansard
from hansard import memory
from hansard.errors import CallRefused
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

AGENT = "research-agent"  # the shipped policy of this name applies to it
PROJECT = "lighthouses"
QUESTIONS = (
    "How high is the tower of Corliss lighthouse, and how often does its lamp flash?",
    "Is a mast of 43 metres taller than the tower of Corliss lighthouse?",
)
INSTRUCTIONS = {
    "id": "instructions",
    "kind": "system",
    "content": "You research. Search first. Name the source of every sentence: It is so [source].",
    "source_ref": {"source_type": "app_state"},
}
EMBARGO = {
    "id": "research.embargo",
    "name": "Embargo",
    "description": "what is under an embargo is not shown to a model",
    "applies_to": {"action": "see"},
    "conditions": {"item.tags": {"contains": "embargo"}},
    "effect": "deny",
    "metadata": {"version": "1"},
}
TOOLS = [
    {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {one: {"type": "string"} for one in parameters},
            "required": parameters,
        },
    }
    for name, description, parameters in (
        ("search_web", "Search the web; what is found is shown to you.", ["query"]),
        ("publish", "Put a text on the web site.", ["page", "text"]),
    )
]


@dataclass
class Research:
    """One question: what was found so far, and what was said."""

    question: str
    adapter: Adapter
    model: str
    found: dict[str, library.Document] = field(default_factory=dict)
    conversation: list[dict[str, Any]] = field(default_factory=list)
    recalled: Any = ()

    def answer(self, run: hansard.Run, most_turns: int = 8) -> str:
        """Search, ask and check until an answer is borne out by its sources."""
        self.recalled = memory.candidates(project=PROJECT, text=self.question)
        self.conversation.append({"role": "user", "content": self.question})
        with hansard.gate(agent=AGENT, tools=self.tools(), policy="research-agent") as gate:
            for number in range(1, most_turns + 1):
                with run.step(f"turn {number}"):
                    compiled = self.compiled(run)
                    gate.note(compiled)
                    said = run.call_model(compiled)
                self.conversation.append(said.message)
                for call in said.tool_calls:
                    self.call(gate, call)
                if not said.tool_calls and self.is_borne_out(run, said.text, compiled):
                    return said.text
        return "no answer that its sources bear out"

    def compiled(self, run: hansard.Run) -> hansard.CompiledStep:
        """Choose what the model sees: of sources that contradict each other, the believed one."""
        documents = [one.candidate() for one in self.found.values()]
        return run.compile_step(
            [INSTRUCTIONS, *documents, *self.conversation],
            model=self.model,
            provider=self.adapter,
            token_budget=1_400,
            response_reserve=300,
            tools=TOOLS,
            memory=self.recalled,
            policy=[EMBARGO],
            task_summary=self.question,
        )

    # ---- tools

    def tools(self) -> list[Any]:
        """The policy lets it use the web, and not write to production."""

        @hansard.tool(effect="read", tool_class="web")
        def search_web(query: str) -> str:
            """Search; what is found becomes a candidate for the next prompt."""
            found = library.find(query)
            self.found |= {one.name: one for one in found}
            public = [one for one in found if "embargo" not in one.tags]
            return "\n".join(f"{one.title}, {one.published}" for one in public)

        @hansard.tool(effect="write", tool_class="site", describe="Publish on {page}: {text}")
        def publish(page: str, text: str) -> str:
            """Put a text on the web site."""
            raise AssertionError("the policy lets nobody come here")

        return [search_web, publish]

    def call(self, gate: Any, call: Any) -> None:
        """Run a tool behind the gate; the model is told what a refusal says."""
        try:
            result = str(gate.call(call.name, call.arguments).for_model())
        except CallRefused as refused:
            result = f"not done: {refused}"
        tell(f"  {call.name}: {result.replace(chr(10), '; ')}")
        self.conversation.append({"role": "tool", "tool_call_id": call.id, "content": result})

    # ---- what is borne out

    def is_borne_out(self, run: hansard.Run, said: str, compiled: hansard.CompiledStep) -> bool:
        """Check an answer against what was in its prompt; what holds is remembered."""
        shown = self.shown(compiled)
        with run.step("citation check", "evaluator", input=said) as step:
            wrong = citations.problems(said, shown)
            step.end(output={"problems": wrong})
        if wrong:
            tell(f"  checked: {'; '.join(wrong)}")
            self.conversation.append({"role": "user", "content": f"Not yet: {'; '.join(wrong)}."})
            return False
        for claim in citations.claims(said):
            if claim.source in self.found:
                remember(claim, self.found[claim.source])
        for receipt in compiled.receipts:
            if receipt.item_id in self.found:
                tell(f"  {compiled.why(receipt.item_id)}")
        return True

    def shown(self, compiled: hansard.CompiledStep) -> dict[str, str]:
        """What the model was given, by the names that it can cite."""
        texts = {one.name: one.text for one in self.found.values()}
        known = {one.id: (one.subject, str(one.content)) for one in self.recalled}
        known |= {name: (name, text) for name, text in texts.items()}
        return dict(known[one] for one in compiled.selected if one in known)


def remember(claim: citations.Claim, source: library.Document) -> None:
    """Keep a finding for later questions: as sure as its source, and no surer."""
    memory.write(
        f"{claim.sentence}.",
        writer="app",  # the program itself says so, since it checked
        by=f"citation check of {source.name}",
        type="fact",
        subject=claim.subject,
        project=PROJECT,
        confidence=source.trust,
        fresh_as_of=f"{source.published}T00:00:00Z",
        metadata={"source": source.name, "title": source.title},
    )


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def make_adapter(provider: str) -> Adapter:
    """Return the scripted model, or the adapter of a provider that is set up in the environment."""
    if provider != "scripted":
        return adapter_for(provider)
    script = Path(__file__).with_name("script.json").read_bytes()
    return adapter_for("scripted", AdapterSettings(script=read_script(script)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="store without a server")
    parser.add_argument("--provider", default="scripted")
    parser.add_argument("--model", default="scripted-1")
    asked = parser.parse_args()
    hansard.init(service_name=AGENT, embedded=asked.embedded)
    for question in QUESTIONS:
        tell(question)
        with hansard.start_run(AGENT, "research", question) as run:
            said = Research(question, make_adapter(asked.provider), asked.model).answer(run)
            run.end(output=said)
        tell(f"{said}\n")
    hansard.shutdown()


if __name__ == "__main__":
    main()

"""An agent with two decorators: nothing else was changed to make its record complete.

    hansard serve &
    python examples/decorated_agent.py "Where is order 7?"

The "model" is a function, so that no key and no network are needed. With a real client, one line
more records its calls too: `hansard.instrument("openai")`, or `hansard.instrument_client(client)`.
"""

from __future__ import annotations

import sys

import hansard

ORDERS = {7: "in the post", 8: "waiting for stock"}


@hansard.tool
def find_order(number: int) -> str:
    """Look up what became of an order."""
    return ORDERS[number]


@hansard.tool
def apologise(reason: str) -> str:
    """Write an apology to the customer."""
    return f"We are sorry: {reason}."


@hansard.trace(kind="llm", name="chat rules-1")
def ask_model(question: str, known: list[str]) -> dict[str, object]:
    """Decide what to do next, as a model would."""
    if not known:
        return {"tool": "find_order", "number": int("".join(filter(str.isdigit, question)))}
    return {"answer": f"Your order is {known[-1]}."}


@hansard.agent
def clerk(question: str) -> str:
    known: list[str] = []
    for _ in range(3):
        wish = ask_model(question, known)
        if "answer" in wish:
            return str(wish["answer"])
        try:
            known.append(find_order(int(str(wish["number"]))))
        except KeyError as unknown:
            return apologise(f"there is no order {unknown}")
    return apologise("this took too many turns")


if __name__ == "__main__":
    hansard.init(service_name="clerk")
    sys.stdout.write(clerk(" ".join(sys.argv[1:]) or "Where is order 7?") + "\n")

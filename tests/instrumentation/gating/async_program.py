"""A program whose async tool is killed half-way, or run by two processes at once; embedded mode.

python -m … KIND ask                 proposes and approves a payment, prints its id
python -m … KIND WAY [ID] [killed]   runs it in one of the ways
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import hansard
from hansard import approvals
from hansard.chat import ChatGate, TextChannel
from hansard.errors import GateError


def _noted(text: str) -> None:
    with open(os.environ["PAID"], "a") as file:
        file.write(f"{text}\n")


def _killed_here() -> None:
    _noted("begun")
    if "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)


async def _pay(amount: int) -> str:
    await asyncio.sleep(0)
    _killed_here()
    await asyncio.sleep(0)
    _noted("paid")
    return "paid"


def _pay_now(amount: int) -> str:
    _killed_here()
    _noted("paid")
    return "paid"


def _chat(pay: Any) -> ChatGate:
    channel = TextChannel("here", lambda text: sys.stdout.write(text))
    return ChatGate(channel, agent=lambda message: message, tools=[pay])


def main(kind: str, way: str, identity: str = "") -> None:
    pay = hansard.tool(effect="write", name="pay")(_pay if kind == "async" else _pay_now)
    hansard.init(embedded=True)
    gate = hansard.gate(tools=[pay], channel="here")
    if way == "ask":
        made: Any = gate.call("pay", {"amount": 7}).for_model()
        approvals.approve(made["approval_id"], by="ana")
        sys.stdout.write(made["approval_id"])
        return
    ways: dict[str, Callable[[], Any]] = {
        "run": lambda: gate.run(identity),
        "arun": lambda: asyncio.run(gate.arun(identity)),
        "run_all_approved": approvals.run_all_approved,
        "arun_all_approved": lambda: asyncio.run(approvals.arun_all_approved()),
        "resume": lambda: _chat(pay).resume(),
        "aresume": lambda: asyncio.run(_chat(pay).aresume()),
    }
    try:
        with gate:
            made = ways[way]()
        sys.stdout.write("ran" if made or way.endswith("resume") else "nothing")
    except GateError as error:
        sys.stdout.write(error.code)


if __name__ == "__main__":
    main(*[one for one in sys.argv[1:] if one != "killed"])

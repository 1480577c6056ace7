"""A program with a gate in embedded mode: asks, or runs what was approved and what it is told."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import hansard
from hansard import approvals
from hansard.errors import GateError


@hansard.tool(effect="write", describe="Pay {amount}")
def pay(amount: int, how: str) -> Any:
    with open(os.environ["PAID"], "a") as file:
        file.write(f"{amount}\n")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


def main(what: str, argument: str) -> None:
    hansard.init(embedded=True)
    if what == "ask":
        identity = pay(7, argument)["approval_id"]
        approvals.approve(identity, by="ana")
        sys.stdout.write(identity)
        sys.stdout.flush()
        if argument == "killed":
            approvals.run(identity)
        return
    sys.stdout.write(str([one.result for one in approvals.run_all_approved()]))
    try:
        approvals.run(argument)
    except GateError as error:
        sys.stdout.write(error.code)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""python -m tests.store.racing FOLDER NAME: one side of a race.

Waits for a line on stdin before each round, so that both sides begin together; answers each round
with one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hansard_store.approvals.errors import AlreadyDecided, AnotherApproverRequired, ClaimRefused
from hansard_store.approvals.service import ApprovalService
from tests.store.accounts import account


def decide(desk: ApprovalService, approval_id: str, name: str) -> dict[str, object]:
    """Approve where the name is even, reject where it is odd; tell how it went."""
    try:
        if name == "ann":
            desk.approve(approval_id, by=name)
        else:
            desk.reject(approval_id, by=name)
    except AlreadyDecided as lost:
        return {"won": False, "first": lost.details["decision"]["decided_by"]}
    return {"won": True, "first": name}


def add_approval(desk: ApprovalService, approval_id: str, name: str) -> dict[str, object]:
    """Approve as one of several, and at once again; tell how each went."""
    told = []
    for _ in range(2):
        try:
            told.append(str(desk.approve(approval_id, by=name).status))
        except (AnotherApproverRequired, AlreadyDecided) as refused:
            told.append(refused.code)
    return {"told": told}


def claim(desk: ApprovalService, approval_id: str) -> dict[str, object]:
    """Claim an approved action; tell why where it may not be."""
    try:
        desk.claim(approval_id)
    except ClaimRefused as refused:
        return {"claimed": refused.code}
    return {"claimed": True}


def main(folder: Path, name: str) -> None:
    """Answer each line: an approval's id is decided on or claimed, a number of events appended."""
    with account(folder) as desk:
        for line in sys.stdin:
            told = line.strip()
            if told.startswith("claim "):
                answer: dict[str, object] = claim(desk, told.removeprefix("claim "))
            elif told.startswith("add "):
                answer = add_approval(desk, told.removeprefix("add "), name)
            elif told.isdigit() and len(told) < 8:
                for number in range(int(told)):
                    desk.tool_called("find", {"n": number}, agent=name)
                answer = {"done": int(told)}
            else:
                answer = decide(desk, told, name)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

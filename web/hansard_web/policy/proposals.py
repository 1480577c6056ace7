"""How proposals are judged by the rules in force."""

from __future__ import annotations

import time

from hansard_store.approvals.records import PolicyNote
from hansard_store.database.data_folder import DataFolder
from hansard_store.policy.check_rows import CheckKeeper
from hansard_store.policy.checks import record_check
from hansard_store.policy.stored_policy import AskPolicy, PolicyQuestion, ids_of, note_of
from hansard_web.policy.service import PolicyBook


def policy_of(book: PolicyBook, keeper: CheckKeeper, folder: DataFolder) -> AskPolicy:
    """Return how proposals are judged by the rules of a book; every check is recorded."""

    def ask(asked: PolicyQuestion) -> PolicyNote:
        current = book.in_force()
        if not current.put and not current.read:
            return PolicyNote(facts=asked.facts)  # nobody set up any rules
        check = asked.check(current.policy)
        row = keeper.row(check, now_ns=time.time_ns())
        trace_id, span_id = ids_of(asked)
        number = record_check(folder, row, trace_id=trace_id, span_id=span_id)
        return note_of(check, asked, check_id=number)

    return ask

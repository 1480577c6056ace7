"""Ids of calls: what joins the event before a call to the one after it."""

from __future__ import annotations

import itertools
import os
import secrets


class CallIds:
    """Gives ids that no other call has, in this process or another; threads may share it.

    They count up behind one random beginning, so that those of a process stand together in the
    store's index of subjects: random ones would touch another page each.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Take another beginning: a fork would count on behind that of its parent."""
        # A letter first: what is all digits could be taken for the number of a card.
        self._beginning = f"c{secrets.token_hex(6)}"
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """Return an id: letters, digits and a hyphen."""
        return f"{self._beginning}-{next(self._numbers)}"


_ids = CallIds()
next_call_id = _ids.next

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.begin_anew)

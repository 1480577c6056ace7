"""A comparison as one HTML file."""

from __future__ import annotations

import apsw

from hansard_web.diff.page.routes import diff_view, whole_state
from hansard_web.diff.runs import Trees
from hansard_web.html_export.frame import SavedFile, saved_file
from hansard_web.run_page.picture import Recent


def saved_diff(
    connection: apsw.Connection, left: str, right: str, *, trees: Trees, now_ns: int
) -> SavedFile:
    """Compare two runs or two steps into a file; raises as the comparison does.

    2,000 rows of steps and 200 items at most; what was left out is said in it.
    """
    state = whole_state(connection, left, right, {})
    view = diff_view(connection, state, trees=trees, kept=Recent(1), now_ns=now_ns, is_saved=True)
    names = "-".join(side.short_id for side in view.sides)
    return saved_file(f"diff-{names}.html", "saved/diff.html", view.title, view, now_ns=now_ns)

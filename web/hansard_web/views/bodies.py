"""The JSON of requests and answers about saved views."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hansard_compiler.compile.models import TopLevel
from hansard_store.bodies import Answer
from hansard_store.runs.saved_views import LONGEST_NAME, LONGEST_QUERY, SavedViewBody

ViewName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class SaveView(TopLevel):
    """A view of the run list; of a name that exists it takes the place."""

    name: ViewName
    query: Annotated[str, Field(max_length=LONGEST_QUERY, description="as in an address")] = ""
    sort: Annotated[str, Field(max_length=40)] = ""
    columns: Annotated[str, Field(max_length=200, description="joined by commas")] = ""


class RenameView(TopLevel):
    """Another name for a view."""

    name: ViewName
    to: ViewName


class DeleteView(TopLevel):
    """A view to be deleted."""

    name: ViewName


class ViewAnswer(Answer):
    view: SavedViewBody


class ViewList(Answer):
    items: list[SavedViewBody]

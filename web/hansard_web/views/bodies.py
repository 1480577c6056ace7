"""The JSON of requests and answers about saved views."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, JsonValue

from hansard_compiler.compile.models import TopLevel
from hansard_store.bodies import Answer
from hansard_store.runs.filters import RUN_SORTS
from hansard_store.runs.saved_views import LONGEST_NAME, LONGEST_QUERY, SavedViewBody
from hansard_web.runs.columns import COLUMNS

_COLUMN: Final = f"({'|'.join(COLUMNS)})"
_SORTS: Final[list[JsonValue]] = [
    "",
    *(f"{sign}{key}" for key in RUN_SORTS for sign in ("-", "")),
]
ViewName = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, json_schema_extra={"format": "printable"})
]


class SaveView(TopLevel):
    """A view of the run list; of a name that exists it takes the place."""

    name: ViewName
    query: Annotated[
        str,
        Field(
            max_length=LONGEST_QUERY,
            description="as in an address",
            json_schema_extra={"format": "run-filters"},
        ),
    ] = ""
    sort: Annotated[str, Field(max_length=40, json_schema_extra={"enum": _SORTS})] = ""
    columns: Annotated[
        str,
        Field(
            max_length=200,
            description="joined by commas",
            json_schema_extra={"pattern": f"^({_COLUMN}(,{_COLUMN})*)?$"},
        ),
    ] = ""


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

"""`GET /v1/sql`: one SELECT over the views; what may be asked is the store's to test."""

from __future__ import annotations

from tests.web.api.conftest import Api


def test_a_select_is_answered_with_columns_and_rows(api: Api) -> None:
    told = api.get("/v1/sql", q="SELECT 1 AS one, 'a' AS letter, NULL AS gap", limit=5)

    assert (told["columns"], told["rows"]) == (["one", "letter", "gap"], [[1, "a", None]])
    assert (told["has_more"], told["truncated_cells"]) == (False, 0)


def test_anything_else_is_a_bad_query_that_names_its_parameter(api: Api) -> None:
    error = api.refused(400, "/v1/sql", q="DELETE FROM run")

    assert (error["code"], error["details"]) == ("invalid_query", {"parameter": "q"})
    assert api.refused(400, "/v1/sql")["code"] == "bad_request"

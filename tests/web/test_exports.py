"""Lists as files: as the API has them, no formulas, no markup, bounded, named with the time."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_web.exports.cli import table as table_command
from hansard_web.exports.formats import FORMATS, MEDIA_TYPES, csv_cell, file_name, write_rows
from hansard_web.exports.registry import NAMES, find_table
from tests.web.html import parse
from tests.web.makers import RunMaker

HOSTILE = '=HYPERLINK("http://x/","a"),\r\n<script>alert(1)</script>|`x`\x00\u202e'


@pytest.fixture
def approvals(runs: RunMaker) -> None:
    runs.run("one")
    with ApprovalService(runs.folder, source="api") as store:
        for number in range(3):
            store.propose(Proposal("send", {"to": number}, description=HOSTILE, agent="clerk"))


def saved(client: TestClient, table: str, format: str, more: str = "") -> str:
    answer = client.get(f"/v1/tables/{table}?format={format}{more}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith(MEDIA_TYPES[format].partition(";")[0])
    assert answer.headers["content-disposition"].startswith(
        f'attachment; filename="hansard-{table}'
    )
    return answer.text


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("table", NAMES)
def test_every_table_is_saved_in_every_format(
    client: TestClient, approvals: None, table: str, format: str
) -> None:
    assert find_table(table).columns[0].rpartition(".")[2] in saved(client, table, format).replace(
        "\\", ""
    )


def test_csv_holds_what_the_api_answers(client: TestClient, approvals: None) -> None:
    items = client.get("/v1/approvals").json()["items"]

    rows = list(csv.DictReader(io.StringIO(saved(client, "approvals", "csv"), newline="")))

    assert [row["approval_id"] for row in rows] == [one["approval_id"] for one in items]
    assert [json.loads(row["arguments"]) for row in rows] == [one["arguments"] for one in items]
    assert {row["status"] for row in rows} == {"awaiting"}
    assert {row["description"][:2] for row in rows} == {"'="}


def test_filters_of_the_list_narrow_the_file_and_others_are_refused(
    client: TestClient, approvals: None
) -> None:
    narrowed = json.loads(saved(client, "approvals", "json", "&agent=nobody"))
    refused = client.get("/v1/tables/approvals?colour=red")

    assert narrowed["rows"] == []
    assert narrowed["is_complete"] is True
    assert (refused.status_code, "colour" in refused.json()["error"]["message"]) == (400, True)
    assert client.get("/v1/tables/approvals?status=blue").status_code == 400
    assert client.get("/v1/tables/approvals?format=xls").status_code == 400
    assert client.get("/v1/tables/passwords").status_code == 404


def test_html_and_markdown_hold_no_markup_of_a_cell(client: TestClient, approvals: None) -> None:
    html = saved(client, "approvals", "html")
    markdown = saved(client, "approvals", "markdown").splitlines()

    assert "<script" not in html
    assert len(parse(html).one("tbody").all("tr")) == 3
    assert len(markdown) == 5
    assert not any(re.search(r"(?<!\\)[<`]", line) for line in markdown)


@given(st.text())
def test_no_text_is_a_formula_for_a_spreadsheet(text: str) -> None:
    cell = csv_cell(text)

    assert cell.lstrip()[:1] not in {*"=+-@＝＋－＠"}
    assert (csv_cell(-3), csv_cell(-0.5), csv_cell(None), csv_cell(True)) == (
        "-3", "-0.5", "", "true",
    )  # fmt: skip


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_csv_is_read_back_row_by_row(rows: list[tuple[str, str]]) -> None:
    text = b"".join(write_rows("csv", "x", ("a", "b"), rows)).decode()

    assert len(list(csv.reader(io.StringIO(text, newline="")))) == len(rows) + 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_cut_says_so(format: str) -> None:
    rows = ([number] for number in range(9))

    text = b"".join(write_rows(format, "x", ("n",), rows, most=4)).decode()

    assert ('"is_complete":false' if format == "json" else "ends after 4 rows") in text
    assert next(rows) == [5]  # one more was read to know, and no further one


def test_a_long_cell_is_cut_and_a_file_is_named_with_the_time_in_utc() -> None:
    assert len(csv_cell("w" * 50_000)) == 32_000
    assert file_name("memory", "markdown", now_ns=0) == "hansard-memory-19700101T000000Z.md"


def test_the_command_writes_the_same_rows(
    client: TestClient, approvals: None, runs: RunMaker, tmp_path: Path
) -> None:
    target = tmp_path / "a.csv"
    ran = CliRunner().invoke(
        table_command,
        ["approvals", "agent=clerk", "--data", str(runs.folder.path), "-o", str(target)],
    )

    assert ran.exit_code == 0, ran.output
    assert target.read_bytes().decode() == saved(client, "approvals", "csv", "&agent=clerk")


@pytest.mark.parametrize(
    ("address", "table"),
    [("/approvals", "approvals"), ("/memory", "memory"), ("/events", "events"),
     ("/receipts", "receipts"), ("/tasks", "tasks"), ("/reports", "reports"),
     ("/health", "senders")],
)  # fmt: skip
def test_a_page_offers_its_table_as_a_file(
    client: TestClient, approvals: None, address: str, table: str
) -> None:
    menu = parse(client.get(address).text).one("div", id=f"export-{table}")

    for link in menu.all("a"):
        assert client.get(link["href"]).status_code == 200
    assert len(menu.all("a")) == len(FORMATS)

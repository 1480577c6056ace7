"""A program that keeps its own record: no server runs, and nothing is sent anywhere.

    pip install 'hansard[embedded]'
    python examples/embedded.py
    hansard runs list            # or look at it later: hansard serve

The store is the server's own file in the same data folder, so a server that is running already, or
is started later, shows what is written here.
"""

from __future__ import annotations

import sys

import hansard

SHELVES = {"lamp": 3, "chair": 0}


@hansard.tool
def count_stock(article: str) -> int:
    """Count what is left of an article."""
    return SHELVES[article]


@hansard.agent
def storekeeper(question: str) -> str:
    """Say of each article in the question whether it can be had."""
    asked = [word.strip("?,.") for word in question.split()]
    left = {article: count_stock(article) for article in asked if article in SHELVES}
    return ", ".join(f"{article}: {count or 'none'}" for article, count in left.items())


def main() -> None:
    hansard.init(embedded=True, service_name="storekeeper")
    sys.stdout.write(storekeeper("Is there a lamp, or a chair?") + "\n")


if __name__ == "__main__":
    main()

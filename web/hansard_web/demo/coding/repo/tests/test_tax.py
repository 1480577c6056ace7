from decimal import Decimal

from shop.tax import tax_on


def test_books_are_taxed_at_the_lower_rate() -> None:
    assert tax_on(Decimal("100"), "book") == Decimal("7.00")

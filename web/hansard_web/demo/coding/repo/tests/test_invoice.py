from decimal import Decimal

from shop import Invoice, Line


def test_the_net_amount_is_the_sum_of_its_lines() -> None:
    invoice = Invoice([Line("pen", Decimal("1.20"), pieces=3), Line("cup", Decimal("4.50"))])
    assert invoice.net == Decimal("8.10")


def test_three_cheap_books_are_taxed_as_one_amount() -> None:
    invoice = Invoice([Line(f"book {n}", Decimal("0.35"), kind="book") for n in range(3)])
    assert invoice.tax == Decimal("0.07")


def test_a_total_has_tax_in_it() -> None:
    assert Invoice([Line("cup", Decimal("10.00"))]).total == Decimal("11.90")

"""Tax by kind of goods."""

from decimal import Decimal

RATES = {"book": Decimal("0.07"), "food": Decimal("0.07"), "other": Decimal("0.19")}


def tax_on(net: Decimal, kind: str) -> Decimal:
    """Return the tax on a net amount, exact."""
    return net * RATES[kind]

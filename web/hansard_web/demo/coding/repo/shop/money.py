"""Amounts of money."""

from decimal import ROUND_HALF_EVEN, Decimal

CENT = Decimal("0.01")


def round_cents(amount: Decimal) -> Decimal:
    """Return an amount in whole cents; half a cent goes to the even one."""
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)

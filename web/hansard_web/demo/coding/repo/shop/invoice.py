"""Invoices: lines, and what they add up to."""

from dataclasses import dataclass, field
from decimal import Decimal

from shop.money import round_cents
from shop.tax import tax_on


@dataclass(frozen=True)
class Line:
    """Some pieces of one article."""

    article: str
    price: Decimal
    pieces: int = 1
    kind: str = "other"

    @property
    def net(self) -> Decimal:
        return self.price * self.pieces


@dataclass
class Invoice:
    """What a customer is asked to pay."""

    lines: list[Line] = field(default_factory=list)

    @property
    def net(self) -> Decimal:
        return round_cents(sum((line.net for line in self.lines), Decimal()))

    @property
    def tax(self) -> Decimal:
        return sum((round_cents(tax_on(line.net, line.kind)) for line in self.lines), Decimal())

    @property
    def total(self) -> Decimal:
        return self.net + self.tax

"""Invoices of a small shop."""

from shop.invoice import Invoice, Line

__all__ = ["Invoice", "Line"]

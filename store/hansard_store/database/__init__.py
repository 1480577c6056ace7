"""Connections, transactions, and what lies beside the database in its folder."""

"""Health: the ledger, the page of health, and the commands that check a store."""

"""The memory page: its state in the address, its list, one record, and panels on other pages."""

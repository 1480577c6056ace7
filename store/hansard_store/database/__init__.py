"""SQLite connections, transactions, cursors, id allocation, disk use and the SQL console."""

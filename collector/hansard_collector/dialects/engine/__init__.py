"""How a dialect is chosen and read: sources of fields, values, and the normal form they make."""

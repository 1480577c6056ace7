"""Settings of the SDK: the table of them, and how a value is found and read."""

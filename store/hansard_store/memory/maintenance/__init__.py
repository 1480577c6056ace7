"""Memory maintenance: candidate pairs, verdicts, supersessions and vectors."""

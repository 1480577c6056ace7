"""Policy rules with their versions, and every check that was made."""

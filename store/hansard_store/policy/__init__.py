"""Policy rule sets with their versions, and the policy checks that were made."""

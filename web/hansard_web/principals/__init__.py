"""Who sends a request: what needs a credential, what is refused, how guessing is slowed."""

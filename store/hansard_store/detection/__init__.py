"""The detector: what goes wrong again and again, found in what is recorded. It changes nothing."""

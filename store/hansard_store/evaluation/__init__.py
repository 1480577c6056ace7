"""What evaluation reads of the store, and the verdicts that it keeps there."""

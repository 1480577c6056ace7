"""Sources that evaluation reads, and its verdicts on claims."""

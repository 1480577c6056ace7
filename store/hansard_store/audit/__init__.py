"""What holds the record against itself: heads kept elsewhere, and seals of rows."""

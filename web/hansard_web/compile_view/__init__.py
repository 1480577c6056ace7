"""A native compile as pages show it."""

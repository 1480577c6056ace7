"""A native compile as pages show it: what was weighed, what became of it, and why. No routes."""

"""Steps: the page of one step, its tabs, API and command."""

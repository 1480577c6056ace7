"""Status reports, shown to the people whom they wait for."""

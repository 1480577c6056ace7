"""Status reports: a page of Markdown that a person reads in a minute."""

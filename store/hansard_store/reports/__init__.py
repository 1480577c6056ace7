"""Status reports: private files in the data folder, and what they are made of."""

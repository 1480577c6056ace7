"""Users: the runs that name one user id, summed: pages, API and command."""

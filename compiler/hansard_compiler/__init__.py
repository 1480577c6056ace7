"""The ground floor: models, hashing and rules, with no clock, disk or network."""

"""Knowledge of particular domains, as versioned data sets with what reads them.

The core names no domain: rules on commands and phrases of claims stand here.
"""

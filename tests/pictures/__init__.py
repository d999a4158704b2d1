"""Pictures as tools return them, before and after: `python -m tests.pictures` writes their page."""

"""Makes the reference pages from the Structs, docstrings and examples of the product."""

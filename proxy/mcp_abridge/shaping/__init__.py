"""One response through one rule: find the document, run the steps, write it back, cut pages."""

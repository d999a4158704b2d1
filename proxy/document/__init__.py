"""JSON that is read lazily: messages, the values in them, paths, sizes, expressions under fuel."""

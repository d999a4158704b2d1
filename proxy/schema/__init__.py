"""JSON Schema: derived for reshaped results, and checked."""

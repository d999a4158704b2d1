"""JSON Schema: derived for shaped results, and checked."""

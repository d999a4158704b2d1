"""Holds responses to the schema that a rule promises (`output_schema`, `validate`)."""

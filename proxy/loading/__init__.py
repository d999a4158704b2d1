"""From the YAML of a rule file to rules, with every mistake in it."""

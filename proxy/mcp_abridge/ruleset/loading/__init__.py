"""Rule files and configurations: from YAML to rules, with the position of every mistake."""

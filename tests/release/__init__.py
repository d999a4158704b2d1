"""A release, built and tried as a user gets it: its mistakes are found before its tag."""

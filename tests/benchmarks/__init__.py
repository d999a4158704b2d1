"""Benchmarks: direct against wrapped, interleaved in one run; `make bench` prints the table."""

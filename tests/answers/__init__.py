"""Bytes to the answer: what a model must call and read until it has seen the answer."""

"""Stores of snapshots outside this process, which several replicas share."""

"""Data that is kept between calls: snapshots, the ledger of sizes, and hashes of recent calls."""

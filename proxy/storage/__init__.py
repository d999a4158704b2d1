"""Data that is kept between calls: snapshots in memory or Redis, and the ledger of sizes."""

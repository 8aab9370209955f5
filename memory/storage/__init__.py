"""The stores: SQL is the truth, every other index is derived from it."""

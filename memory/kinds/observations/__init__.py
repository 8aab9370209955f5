"""Observations: what was noticed in what people typed, whose it is, and what it rests on."""

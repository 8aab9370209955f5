"""Benchmarks: figures, never tests. Loaded only by `merk bench`, and not part of the wheel."""

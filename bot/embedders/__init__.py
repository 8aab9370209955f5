"""Embedders behind `memory.ports.Embedder`, one module a provider."""

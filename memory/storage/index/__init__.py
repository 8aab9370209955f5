"""The derived indexes: words and vectors, rebuilt from SQL at any time."""

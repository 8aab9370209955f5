"""The pictures of the README, drawn from a running Merk. Only the model's sentences are scripted."""

"""Pieces of work: what is open, what it shows, and the things that are worked on: drafts and instructions."""

"""Reminders: what a person means by a time, and what rings then."""

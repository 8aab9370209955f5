"""What the clock wakes."""

"""What an answer is made of: the past that is shown, rounds of model and tools, citations, the bill."""

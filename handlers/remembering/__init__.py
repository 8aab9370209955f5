"""What a person sees of their memory and does with it: facts, what was noticed, why, the digest."""

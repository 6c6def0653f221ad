"""How good translations are: scores, what is needed to repeat them, and what chance could do."""

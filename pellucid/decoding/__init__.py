"""Search: from a source sentence to its likeliest translations, and the score of any given one."""

"""Publishing a model: what is sent, its card, and how it reaches the Hub."""

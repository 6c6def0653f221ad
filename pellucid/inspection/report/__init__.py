"""One sentence walked through one model, equation by equation, as a single HTML file."""

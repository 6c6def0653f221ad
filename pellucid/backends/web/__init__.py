"""A bundle as one HTML file that translates by itself: the engine in JavaScript, and its page."""

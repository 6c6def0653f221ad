"""Other ways to write the equations: read and tested, but run by nothing."""

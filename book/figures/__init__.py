"""Figures about the equations, with matplotlib (extra ``plot``)."""

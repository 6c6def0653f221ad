"""Figures with matplotlib (extra ``plot``): equations, attention weights, curves of runs."""

"""Modules that own parameters and call the equations; ids in, log-odds out.

``config`` describes a model and needs no torch; ``build`` makes one.
"""

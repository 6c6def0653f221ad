"""Modules that own parameters and call the equations; ids in, log-odds out.

``config`` says what a model is made of and needs no torch; ``build`` makes one.
"""

"""Interfaces of other programs, so that their clients work with this server: each is a folder."""

"""Hostile input, drawn at random: ``python -m tests.fuzz --cases 10000``."""

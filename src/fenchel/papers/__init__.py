"""Experiments that reproduce published results, one module each, and the data that they need."""

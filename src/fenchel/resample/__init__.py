"""Samples drawn again: folds."""

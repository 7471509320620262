"""Plots, and HTML pages about fitted models."""

"""Curves, containers of samples, quadrature and files."""

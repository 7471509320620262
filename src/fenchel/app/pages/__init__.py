"""HTML pages about fitted models."""

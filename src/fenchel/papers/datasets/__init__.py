"""Data sets built from their public sources."""

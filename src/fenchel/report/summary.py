"""Moved to ``fenchel.app.pages.summary``; this name goes with the next release."""

from fenchel.app.pages.summary import kernel_text, model_page

__all__ = ["kernel_text", "model_page"]

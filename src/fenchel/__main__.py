"""``python -m fenchel``, and the command ``fenchel``."""

import sys
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Run the command line, or report which extra installs it."""
    try:
        run = import_module("fenchel.app.cli").main
    except ImportError as error:
        sys.exit(f"Error: {error}")
    run(prog_name="fenchel")


if __name__ == "__main__":
    main()

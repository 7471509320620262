"""``python -m fenchel``, and the command ``fenchel``."""

import sys
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Run the command line, or report which extra installs it; ``explain`` needs none."""
    try:
        run = import_module("fenchel.app.cli").main
    except ImportError as error:
        if sys.argv[1:2] != ["explain"]:
            sys.exit(f"Error: {error}")
        try:
            print(import_module("fenchel.app.explanations").explain(*sys.argv[2:3]))
        except ValueError as unknown:
            sys.exit(f"Error: {unknown}")
        return
    run(prog_name="fenchel")


if __name__ == "__main__":
    main()

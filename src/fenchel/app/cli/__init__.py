"""The command line, with one module per command; the only package that prints."""

from fenchel import __version__
from fenchel.app.cli.groups import LazyGroup, click

__all__ = ["main"]

_COMMANDS = {
    "datasets": "List, build, check and fetch data files.",
    "demo": "Curves from curves on simulated data, with and without outliers.",
    "explain": "Say what a warning or an error means and what to do.",
    "fit": "Fit a model to a table.",
    "outliers": "Find the wrong rows of a table.",
    "predict": "Predict with a saved model.",
    "report": "Write an HTML report on a saved model.",
    "reproduce": "Recompute published numbers and print them next to ours.",
}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Operator-valued kernel machines with certified duality gaps.

    \b
      fenchel fit houses.csv --target price --model model.fenchel
      fenchel predict model.fenchel new.csv

    Exit status: 0 success, 1 an error, 2 wrong usage, 3 a fit that did not reach its tolerance. Every error is one
    line; --debug after a command shows the traceback.
    """


for _name, _short_help in _COMMANDS.items():
    main.list_command(_name, _short_help)

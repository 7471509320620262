"""The command line, one module for each command; the only package that prints."""

from fenchel.cli.groups import LazyGroup, click

__all__ = ["main"]

_COMMANDS = {
    "datasets": "List, locate, check and fetch data files.",
    "demo": "Curves from curves, on made data with and without outliers.",
    "fit": "Fit a model to a table.",
    "outliers": "Find the rows of a table that are wrong.",
    "predict": "Predict with a saved model.",
    "report": "Write a page about a saved model.",
    "reproduce": "Compute published numbers anew, and print them beside ours.",
}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fenchel")
def main() -> None:
    """Operator-valued kernel machines with certified duality gaps.

    Exit status: 0 done, 1 an error, 2 a wrong call, 3 a fit that did not reach its tolerance. Every error is one line;
    --debug after a command shows where it comes from.
    """


for _name, _short_help in _COMMANDS.items():
    main.list_command(_name, _short_help)

"""The command line, one module for each command; the only package that prints."""

from fenchel.cli.datasets import datasets_command
from fenchel.cli.demo import demo_command
from fenchel.cli.fit import fit_command
from fenchel.cli.predict import predict_command
from fenchel.cli.report import report_command
from fenchel.cli.reproduce import reproduce_command
from fenchel.cli.terminal import OneLineGroup, click

__all__ = ["main"]


@click.group(cls=OneLineGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fenchel")
def main() -> None:
    """Operator-valued kernel machines with certified duality gaps.

    Exit status: 0 done, 1 an error, 2 a wrong call, 3 a fit that did not reach its tolerance. Every error is one line;
    --debug after a command shows where it comes from.
    """


for _command in (datasets_command, demo_command, fit_command, predict_command, report_command, reproduce_command):
    main.add_command(_command)

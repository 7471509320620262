"""The command ``fenchel explain``."""

from fenchel.app.cli.groups import click, command, echo
from fenchel.app.explanations import explain

__all__ = ["explain_command"]


@command("explain")
@click.argument("code", required=False)
def explain_command(code: str | None) -> None:
    """Say what a warning or an error means and what to do.

    CODE is the word that the message ends with. Without it, all codes are listed.

    \b
      fenchel explain not-converged
    """
    echo(explain(code))

"""clew completion: print the script that adds completion to a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from clew.cli.completion import COMPLETE_VARIABLE
from clew.cli.options import refuse_json

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
@click.pass_context
def command(context: click.Context, /, shell: str) -> None:
    """Print a script that completes commands, options, session ids, agents, models and projects.

    \b
    bash: echo 'eval "$(clew completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(clew completion zsh)"' >> ~/.zshrc
    fish: clew completion fish > ~/.config/fish/completions/clew.fish

    Session ids come from the catalog as it is: after `clew sync`, or any command that reads sessions.
    """
    refuse_json(context)
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(context.find_root().command, {}, "clew", COMPLETE_VARIABLE).source())

"""The program `clew`, and `python -m clew`."""

import signal


def run() -> None:
    """Load and run the command line.

    Until it is loaded, Ctrl-C ends the process by the signal itself. Python would print a traceback, or go on if the
    interrupt is raised in a callback of the import system.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from clew.cli.main import run as run_command_line

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_command_line()


if __name__ == "__main__":
    run()

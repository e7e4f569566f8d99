"""`python -m clew`: the command, where only the interpreter is on the path."""

from clew.cli.main import run

if __name__ == "__main__":
    run()

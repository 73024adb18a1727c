"""The command line: one file for each verb."""

from joulepath.cli.main import main

__all__ = ["main"]

"""The command `habitus`: thin wrappers over the library, one file a command."""

from habitus.cli.main import command_for, main

__all__ = ["command_for", "main"]

"""The command `habitus`: thin wrappers over the library, one file a command."""

from habitus.cli.main import app, main

__all__ = ["app", "main"]

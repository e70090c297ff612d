"""The command `bookrag`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Runs the command with the process's arguments and ends the process."""
    from bookrag_fast.cli.main import app

    app(prog_name="bookrag")

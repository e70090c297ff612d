"""`python -m bookrag_fast.cli`: the command where its script is not on the path."""

from __future__ import annotations

from bookrag_fast.cli import main

main()

"""Between our dataclasses and the messages of bookrag.v1, in both directions.

The only package that knows both, a module for each family of messages. Decoding is for the client:
a value that this version does not know (a newer server's enum) is an error that says so, never a
guess.
"""

from bookrag_fast.server.wire.answers import (
    answer_event_from,
    answer_event_to,
    answer_from,
    answer_to,
    search_result_from,
    search_result_to,
)
from bookrag_fast.server.wire.books import book_from, book_to, progress_from, progress_to
from bookrag_fast.server.wire.trees import tree_from, tree_to

__all__ = [
    "answer_event_from",
    "answer_event_to",
    "answer_from",
    "answer_to",
    "book_from",
    "book_to",
    "progress_from",
    "progress_to",
    "search_result_from",
    "search_result_to",
    "tree_from",
    "tree_to",
]

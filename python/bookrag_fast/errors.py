"""The exception tree of bookrag_fast.

Every error says what happened, where, and what to do next. ``code`` is stable and is what the
command line's JSON and the gRPC status details carry; ``exit_code`` is the command line's exit
status. Wording may change between versions, codes do not.
"""

from __future__ import annotations

__all__ = [
    "BookragError",
    "BudgetError",
    "ConfigError",
    "CorruptIndexError",
    "DamagedDocumentError",
    "DamagedPdfError",
    "DeadlineError",
    "DocumentError",
    "EmptyDocumentError",
    "EncryptedPdfError",
    "IndexStoreError",
    "InvalidArgumentError",
    "LibraryError",
    "ModelError",
    "ModelMismatchError",
    "ModelNotFoundError",
    "ModelRateLimitError",
    "ModelRefusedError",
    "ModelReplyError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "NewerIndexError",
    "NoTextLayerError",
    "NotAPdfError",
    "QueryError",
    "ShelfBusyError",
    "SpendingLimitError",
    "TooLargeError",
    "UnknownBookError",
    "UnknownNodeError",
    "UnreadablePagesError",
    "UnsupportedFormatError",
    "WrongPasswordError",
    "ZeroPagesError",
]


class BookragError(Exception):
    """Base of every error that bookrag_fast raises on purpose.

    Args:
        message: what happened and where.
        hint: what to do next, as a sentence or a command; "" when there is nothing to add.
    """

    code: str = "internal"
    exit_code: int = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


# --- arguments and configuration ------------------------------------------------------------


class InvalidArgumentError(BookragError, ValueError):
    """An argument has the wrong shape, type or range. Also a ``ValueError``."""

    code = "invalid_argument"
    exit_code = 3


class TooLargeError(BookragError):
    """An input is beyond a stated limit; refused before memory is taken."""

    code = "too_large"
    exit_code = 4


class ConfigError(BookragError):
    """The configuration names an unknown key or an impossible value."""

    code = "config"
    exit_code = 5


# --- documents ------------------------------------------------------------------------------


class DocumentError(BookragError):
    """A document cannot be read. The library is left as it was."""

    code = "document"
    exit_code = 10


class NotAPdfError(DocumentError):
    """The file claims to be a PDF and is none."""

    code = "not_a_pdf"
    exit_code = 11


class EmptyDocumentError(DocumentError):
    """The file has no bytes, or nothing in it to be read."""

    code = "empty_document"
    exit_code = 12


class EncryptedPdfError(DocumentError):
    """The PDF needs a password and none was given."""

    code = "encrypted"
    exit_code = 13


class WrongPasswordError(EncryptedPdfError):
    """The PDF needs a password and the one given does not open it."""

    code = "wrong_password"
    exit_code = 14


class DamagedPdfError(DocumentError):
    """The file starts like a PDF but is truncated or damaged beyond repair."""

    code = "damaged_pdf"
    exit_code = 15


class ZeroPagesError(DocumentError):
    """The PDF opens but has no page."""

    code = "zero_pages"
    exit_code = 16


class NoTextLayerError(DocumentError):
    """No page of the document carries text (a scan without OCR)."""

    code = "no_text_layer"
    exit_code = 17


class UnreadablePagesError(DocumentError):
    """Every page failed to load. One bad page alone is a warning, not an error."""

    code = "unreadable_pages"
    exit_code = 18


class UnsupportedFormatError(DocumentError):
    """The file is of no kind that bookrag_fast reads."""

    code = "unsupported_format"
    exit_code = 19


class DamagedDocumentError(DocumentError):
    """The file is of a kind that is read, other than PDF, but truncated, damaged or hostile."""

    code = "damaged_document"
    exit_code = 60  # the tens of documents are full


# --- the saved index and the shelf ------------------------------------------------------------


class LibraryError(BookragError):
    """The library folder cannot be used as asked."""

    code = "library"
    exit_code = 20


class UnknownBookError(LibraryError, KeyError):
    """No book of that id, title or file is on the shelf."""

    code = "unknown_book"
    exit_code = 21

    __str__ = BookragError.__str__  # KeyError would print the repr


class UnknownNodeError(LibraryError, KeyError):
    """The book has no node of that id."""

    code = "unknown_node"
    exit_code = 22

    __str__ = BookragError.__str__


class ShelfBusyError(LibraryError):
    """Another process holds the shelf's write lock."""

    code = "shelf_busy"
    exit_code = 23


class IndexStoreError(LibraryError):
    """A saved book cannot be read or written."""

    code = "index_store"
    exit_code = 24


class CorruptIndexError(IndexStoreError):
    """A saved book is incomplete or does not match its checksums."""

    code = "corrupt_index"
    exit_code = 25


class NewerIndexError(IndexStoreError):
    """A saved book was written by a newer bookrag_fast than this one."""

    code = "newer_index"
    exit_code = 26


class ModelMismatchError(IndexStoreError):
    """A book was indexed with another embedding model or dimension than the one in use."""

    code = "model_mismatch"
    exit_code = 27


# --- models and queries -----------------------------------------------------------------------


class ModelError(BookragError):
    """A model failed and has no offline twin for this task."""

    code = "model"
    exit_code = 30


class ModelNotFoundError(ModelError):
    """A model's folder or one of its files is missing."""

    code = "model_not_found"
    exit_code = 31


class ModelUnavailableError(ModelError):
    """An endpoint cannot be reached, fails, or is left alone for a while after it failed often.

    Worth trying again; ``retry_after`` is how many seconds it asked to be left alone, if it did.
    ``unreachable``: there was nobody to connect to.
    """

    code = "model_unavailable"
    exit_code = 32

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        retry_after: float | None = None,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after
        self.unreachable = unreachable


class ModelRateLimitError(ModelUnavailableError):
    """An endpoint refuses more calls for now."""

    code = "model_rate_limit"
    exit_code = 33


class ModelTimeoutError(ModelError):
    """A model did not answer within its deadline; the call was cancelled."""

    code = "model_timeout"
    exit_code = 34


class ModelRefusedError(ModelError):
    """An endpoint does not take the call as it is: key, name of the model, or request."""

    code = "model_refused"
    exit_code = 35


class ModelReplyError(ModelError):
    """A model's reply is none: empty, too long, of the wrong shape, or not finite.

    ``prompt_tokens`` and ``completion_tokens`` are what its server states that it took all the
    same; 0 where it states nothing.
    """

    code = "model_reply"
    exit_code = 36

    prompt_tokens: int = 0
    completion_tokens: int = 0


class SpendingLimitError(ModelError):
    """The budget of the configuration is spent. What was paid for is kept, so that the same work
    goes on from there once there is a budget again."""

    code = "spending_limit"
    exit_code = 37


class QueryError(BookragError):
    """A question cannot be answered as asked."""

    code = "query"
    exit_code = 40


class BudgetError(QueryError):
    """A token budget is out of range."""

    code = "budget"
    exit_code = 41


class DeadlineError(QueryError):
    """The deadline passed before the work was done; the work was cancelled."""

    code = "deadline"
    exit_code = 42

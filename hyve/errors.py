"""Every error that HYVE raises on purpose. One root, so that a caller chooses how much to catch.

HyveError
├── InputError        the data or the question can't be used (empty, binary, unreadable, over a limit)
├── BudgetError       the token budget is below what the fixed parts of the prompt need
├── SqlError          a statement did not run
│   ├── SqlRefused    it is not one read-only SELECT over this request's tables
│   └── SqlLimit      it ran past its time or memory limit
├── ReplyError        the model's reply holds no usable decision
├── BackfillError     a template path or a mapping doesn't fit the rows
└── ModelError        the model's service failed (see `kind`)

The text of each says what was wrong, where (path, offset, line) and what to do.
"""

from __future__ import annotations

from typing import Literal


class HyveError(Exception):
    """Root of all HYVE errors; `str(error)` is fit to be shown to a user."""


class InputError(HyveError):
    """The data or the question can't be used as given."""


class BudgetError(HyveError):
    """The budget is too small. `smallest` is the smallest one, in tokens, that works."""

    def __init__(self, message: str, smallest: int) -> None:
        super().__init__(message)
        self.smallest = smallest


class SqlError(HyveError):
    """A statement did not run; the message is DuckDB's, shortened."""


class SqlRefused(SqlError):
    """The statement is not one read-only SELECT over this request's tables."""


class SqlLimit(SqlError):
    """The statement ran past its time or memory limit and was interrupted."""


class ReplyError(HyveError):
    """The model's reply holds no usable decision."""


class BackfillError(HyveError):
    """A template path or a mapping doesn't fit the template or the rows. Nothing was filled."""


class ModelError(HyveError):
    """The model's service failed. `kind` says how, so that a caller can choose to try again."""

    def __init__(
        self,
        message: str,
        kind: Literal["auth", "rate", "server", "timeout", "connection", "request", "reply"],
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

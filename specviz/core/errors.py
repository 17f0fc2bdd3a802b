"""Every error that specviz raises on purpose.

SpecvizError
├── SettingsError            a setting breaks its rule
├── PromptError              the prompt cannot be decoded from (empty, too long)
├── ModelError
│   ├── UnknownModelError    no such name, repo, folder or file
│   ├── UnsupportedModelError  found, but it cannot be run here
│   └── DownloadError        could not be fetched, verified or stored
├── PairingError             draft and target do not share a vocabulary
├── TraceError               a recording cannot be written or read
├── RemoteError              a server that runs a target for us failed
│   ├── RefusedError         it refused the key, the model or the request
│   ├── UnreachableError     no answer: no connection, a time-out, busy for too long
│   ├── AnswerError          it answered, but the answer cannot be used
│   │   └── LackingError     the answer lacks something that the server could give when it was probed
│   └── IncapableError       it cannot do what the settings ask for
├── OutputError              standard output cannot be written
├── StoppedError             a wait was ended because the run was stopped
└── RunError                 a run failed or cannot be started
    └── ScoresError          a model in this process gave scores that are no distribution

A message gives the rule and the value; `remedy` says what to do about it. Pages and the CLI show only these errors:
any other exception is a bug and is reported as one.
"""

from __future__ import annotations


class SpecvizError(Exception):
    """An error with a remedy.

    Attributes:
        message: what is wrong: the rule and the value that broke it.
        remedy: what the user can do about it; may be empty.
        exit_code: exit status of the CLI: 2 for bad input, 1 for work that failed.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class SettingsError(SpecvizError):
    """A setting breaks its rule."""

    exit_code = 2


class PromptError(SpecvizError):
    """The prompt is empty, or does not fit the target's context."""

    exit_code = 2


class ModelError(SpecvizError):
    """A model cannot be found, fetched or used."""

    exit_code = 2


class UnknownModelError(ModelError):
    """No model of that name, and no such repository, folder or file."""


class UnsupportedModelError(ModelError):
    """The model was found, but its format, architecture or cache cannot be used."""


class DownloadError(ModelError):
    """A download was interrupted, failed its check, or could not be stored."""

    exit_code = 1


class PairingError(SpecvizError):
    """Draft and target do not have the same vocabulary."""

    exit_code = 2


class TraceError(SpecvizError):
    """A recording cannot be written or read."""

    exit_code = 2


class RemoteError(SpecvizError):
    """A server that runs a target for us failed.

    Attributes:
        status: HTTP status of its last answer; None when there was no answer.
    """

    def __init__(self, message: str, remedy: str = "", status: int | None = None) -> None:
        super().__init__(message, remedy)
        self.status = status


class RefusedError(RemoteError):
    """The server refused the key, the model or the request; a retry would not help."""


class UnreachableError(RemoteError):
    """No answer came: no connection, a time-out, or a server that stayed busy."""


class AnswerError(RemoteError):
    """An answer that cannot be used: not JSON, truncated, or with impossible values."""


class LackingError(AnswerError):
    """An answer with too few rows, choices or ids, from a server that could give them when it was probed."""


class IncapableError(RemoteError):
    """The server cannot do what the settings ask for."""

    exit_code = 2


class OutputError(SpecvizError):
    """Standard output cannot be written.

    Attributes:
        unread: because its reader has ended, as in `| head`.
    """

    def __init__(self, message: str, remedy: str = "", unread: bool = False) -> None:
        super().__init__(message, remedy)
        self.unread = unread


class StoppedError(SpecvizError):
    """A wait was ended because the run was stopped; the loop ends the run normally, not as a failure."""


class RunError(SpecvizError):
    """A run failed, or cannot be started."""


class ScoresError(RunError):
    """A row of scores is no distribution: nan, +inf, or nothing finite.

    Args:
        problem: what is wrong with the row.
        who: the model that gave it, as the subject of a sentence.
    """

    def __init__(self, problem: str, who: str = "The model") -> None:
        super().__init__(
            f"{who} gave no usable scores: {problem}.",
            "Its weights may be damaged, or overflow in low precision: pull the model again, or choose another.",
        )
        self.problem = problem


def of_system(exc: OSError) -> SpecvizError:
    """The error for what the operating system refused and nobody expected: what it said, of which file, no guess."""
    files = " → ".join(str(name) for name in (exc.filename, exc.filename2) if name is not None)
    return SpecvizError(
        f"The operating system reported: {exc.strerror or exc}{f': {files}' if files else ''}.",
        "specviz did not expect this there. Look at the file or the device; if it is in order, please report it.",
    )

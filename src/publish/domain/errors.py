"""Every error that the program can meet, told apart by what its catcher does next.

A message is lower case, has no final stop, puts the value last and never holds a secret.
"""

from __future__ import annotations

from collections.abc import Sequence


class PublishError(Exception):
    """The base of all: its text is what the user reads after `publish: `."""

    more: Sequence[PublishError] = ()
    """Further faults of the same kind, found at the same time."""


class UsageError(PublishError):
    """The command line or an E variable is wrong; nothing was looked at (exit 2)."""


class ConfigError(PublishError):
    """What the user named is wrong or not there: a root, a save, a proxy. Final."""


class FormatError(PublishError):
    """A name or a file breaks its format. Final until somebody mends it."""


class TimedOut(PublishError):
    """The verb's or the scan's `-timeout` ran out; a write under way may have happened."""


class CredentialsError(PublishError):
    """`-creds`, or what it found, is wrong; the text names source and field, never a value."""


class SourceUnavailable(CredentialsError):
    """The source is not on this node: the next one is tried."""


class StoreFault(PublishError):
    """A request to the store did not do what was asked."""


class AlreadyExists(StoreFault):
    """The name is taken. Nothing was written; the first holder is untouched."""


class NotApplied(StoreFault):
    """The request certainly had no effect, and may succeed when it is sent again."""


class Unreachable(NotApplied):
    """No connection could be made at all (refused, no such name, no route)."""


class OutcomeUnknown(StoreFault):
    """The request may have had its effect: its reply is lost. Send it again and see."""


class Conflict(StoreFault):
    """Another conditional put for the same name is in flight; nothing was written."""


class CredentialsRejected(StoreFault):
    """The store does not accept the credentials. Nothing was written."""

    def __init__(self, message: str, code: str) -> None:
        """`code` is the store's own word for it, such as `ExpiredToken`."""
        super().__init__(message)
        self.code = code


class PermanentFault(StoreFault):
    """The store will not do this, now or later: permissions, quota, not implemented."""


class SymlinkInPath(StoreFault):
    """A symbolic link stands on the way to what was to be removed. Nothing was removed.

    `link` is the link's path relative to the root.
    """

    def __init__(self, link: bytes) -> None:
        super().__init__("a symbolic link is in the way")
        self.link = link

"""Every error of the program, told apart by what the code that catches it does next.

PublishError
  UsageError             print how to call the command; exit 2
  ConfigError            stop: what the user named cannot be used (a root, a record that contradicts a flag)
    SaveError            stop: a save cannot be used, and the user is told which
  FormatError            stop: a name or a file breaks its format
  TimedOut               stop: -timeout ran out; a write under way may have happened
  CannotStartThread      stop: nothing was done; it may succeed later
  CredentialsError       stop: -creds, or what a source returned, is invalid
    SourceUnavailable    try the next source
  StoreFault             the store did not do what it was asked
    AlreadyExists        nothing was written: treat the name as taken
    NotApplied           certainly no effect: send the request again
      Unreachable        the same, but give up sooner: no connection could be made
    OutcomeUnknown       perhaps an effect: send it again, then look at the result
    Conflict             nothing was written: send it again, a few times at most
    CredentialsRejected  nothing was written: refresh the credentials if `refreshable`, else stop
    PermanentFault       stop: asking again does not help
      NotDurable         never publish the save as it is: its data may be lost, whatever the next sync says
    SymlinkInPath        leave the save in place and go on

A message is lower case, has no final stop, puts the value last and never holds a secret.
"""

from __future__ import annotations

from collections.abc import Sequence

from publish.domain.light_typing import TypeVar

Fault = TypeVar("Fault", bound="PublishError")


class PublishError(Exception):
    """The base class: the text is what the user reads after `publish: `."""

    more: Sequence[PublishError] = ()
    """Further faults of the same kind, found at the same time."""


def first_with_rest(faults: Sequence[Fault]) -> Fault:
    """The first of `faults`, which are of one kind, with the others as its `more`."""
    first = faults[0]
    first.more = faults[1:]
    return first


class UsageError(PublishError):
    """The command line or an environment variable is wrong. Nothing was read or written."""


class ConfigError(PublishError):
    """What the user named cannot be used: it is wrong or missing, or contradicts what is on record."""


class SaveError(ConfigError):
    """One save cannot be published, resumed from or taken back."""

    def __init__(self, what: str, path: bytes) -> None:
        """`path` is relative to the root, and the last part of the message."""
        super().__init__(f"{what}: {path.decode('utf-8', 'surrogateescape')}")
        self.what = what
        self.path = path


class FormatError(PublishError):
    """A name or a file breaks its format."""


class TimedOut(PublishError):
    """`-timeout` ran out. A write under way may have happened."""


class CannotStartThread(PublishError):
    """The system gives this process no further thread now. Nothing was done."""


class CredentialsError(PublishError):
    """`-creds`, or what a source returned, is invalid. The text names source and field, never a value."""


class SourceUnavailable(CredentialsError):
    """This node does not have the source."""


class StoreFault(PublishError):
    """The store did not do what it was asked."""


class AlreadyExists(StoreFault):
    """The name is taken. Nothing was written, and the existing file is untouched."""

    def __init__(self, message: str, *, perhaps_ours: bool = False) -> None:
        """`perhaps_ours`: an earlier attempt of the same call, whose reply was lost, may have taken the name."""
        super().__init__(message)
        self.perhaps_ours = perhaps_ours


class NotApplied(StoreFault):
    """The request certainly had no effect, and may succeed when it is sent again."""


class Unreachable(NotApplied):
    """No connection could be made (refused, unknown host, no route)."""


class OutcomeUnknown(StoreFault):
    """The request may have had its effect, but the reply is lost."""


class Conflict(StoreFault):
    """Another conditional put of the same name is in flight. Nothing was written."""


class CredentialsRejected(StoreFault):
    """The store does not accept the credentials. Nothing was written."""

    def __init__(self, message: str, code: str, *, refreshable: bool, resend_unchanged: bool = False) -> None:
        """`code` is the store's own error code. `refreshable`: newer credentials may be accepted.

        `resend_unchanged`: the same credentials may be, too, if the sources still give them.
        """
        super().__init__(message)
        self.code = code
        self.refreshable = refreshable
        self.resend_unchanged = resend_unchanged


class PermanentFault(StoreFault):
    """The store refuses this now and later: permissions, quota, not implemented."""


class NotDurable(PermanentFault):
    """A save's data could not be made durable, and may be lost although it still reads well (fsync(2), EIO)."""


class SymlinkInPath(StoreFault):
    """A symbolic link is on the path of what was to be removed. Nothing was removed."""

    def __init__(self, link: bytes) -> None:
        """`link` is the link's path relative to the root."""
        super().__init__("a symbolic link is in the way")
        self.link = link

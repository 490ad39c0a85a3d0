"""A kind of checkpoint root: how `-checkpoint` names it, and what it opens for the verbs."""

from __future__ import annotations

from publish.domain.entry import RESERVED, to_text
from publish.domain.errors import ConfigError, SaveError, UsageError
from publish.domain.light_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.adapters.process_memory import DumpsForbidden
    from publish.cli.deadline import Deadline
    from publish.cli.reporter import Reporter
    from publish.cli.verbs.common import Invocation
    from publish.domain.errors import StoreFault
    from publish.domain.ports import ParallelMap
    from publish.domain.retrying_store import OnRetry, RetryingStore
    from publish.domain.root import Root

T = TypeVar("T")


class OpenRoot:
    """A checkpoint root that a verb can work on."""

    def __init__(
        self,
        root: Root,
        store: RetryingStore,
        reporter: Reporter,
        parallel: ParallelMap,
        locate: Callable[[bytes], bytes],
        probe: Callable[[], bytes] = bytes,
        dumps: DumpsForbidden | None = None,
    ) -> None:
        """`locate` gives the path below the root of a save as the user wrote it, and raises ConfigError.

        `probe` describes what it probed, or raises what is wrong with the store; by default there is nothing to probe.
        `dumps`: what a child must not inherit.
        """
        self.root = root
        self.store = store
        self.reporter = reporter
        self.parallel = parallel
        self.locate = locate
        self.probe = probe
        self._dumps = dumps

    def locate_save(self, save: bytes) -> bytes:
        """The path below the root of a save as the user wrote it.

        Raises ConfigError if it is not under the root, is the root, or lies in a folder that is publish's own.
        """
        path = self.locate(save)
        if not path:
            raise ConfigError(f"SAVE must be inside the root, not the root itself: {to_text(save)}")
        reserved = path.partition(b"/")[0]
        if reserved in RESERVED:
            raise ConfigError(f"{to_text(reserved)}/ is reserved for publish and holds no saves: {to_text(save)}")
        return path

    def naming_saves(self, work: Callable[[], T]) -> T:
        """What `work` returns. An error about a save names it as `log` prints it, so that it can be copied."""
        try:
            return work()
        except SaveError as error:
            raise ConfigError(f"{error.what}: {to_text(self.root.render(error.path))}") from error

    def start(self, start: Callable[[], T]) -> T:
        """What `start` returns, which starts a child with the limits that publish was started with."""
        if self._dumps is None:
            return start()
        with self._dumps.lifted():
            return start()


class Prepared:
    """A root whose value and credential list are valid, but to which no request has been sent."""

    def __init__(self, deadline: Deadline, open_root: Callable[[], OpenRoot]) -> None:
        """`open_root` raises PublishError; it may only be called under the deadline."""
        self.deadline = deadline
        self.open = open_root


class Backend:
    """A kind of checkpoint root."""

    def __init__(
        self,
        name: str,
        plural: str,
        claims: Callable[[bytes], bool],
        prepare: Callable[[Invocation, bytes, bool], Prepared],
        fault_prefix: str = "",
    ) -> None:
        """`name` and `plural` are for messages: "an S3 root", and what `Flag.only_for` says.

        `claims` tells whether a text names a root of this kind. `prepare(invocation, text,
        long_running)` raises ConfigError and CredentialsError. `fault_prefix` goes before a
        fault of the store.
        """
        self.name = name
        self.plural = plural
        self.claims = claims
        self.prepare = prepare
        self.fault_prefix = fault_prefix

    def check_usage(self, invocation: Invocation) -> None:
        """Raises UsageError for a verb or a flag that does not apply to this kind of root."""
        verb, line = invocation.verb, invocation.line
        if verb.only_for not in ("", self.plural):
            raise UsageError(f"{verb.name} applies only to {verb.only_for}; the root is {self.name}")
        for flag in verb.flags:
            if flag.only_for == self.plural and flag.required and not line.get(flag):
                raise UsageError(f"{flag.synopsis} is required for {self.plural}")
            if flag.only_for not in ("", self.plural) and line.is_set(flag):
                raise UsageError(f"-{flag.name} applies only to {flag.only_for}; the root is {self.name}")


def log_retries(invocation: Invocation, *, long_running: bool) -> OnRetry:
    """Tells the user that a request failed and is retried. Less than a second is shown as one."""
    prefix = invocation.verb.name if long_running else "store"

    def log(step: str, fault: StoreFault, remaining: float) -> None:
        invocation.output.log(f"{prefix}: {step} failed, retrying for up to {max(remaining, 1):.0f}s: {fault}")

    return log

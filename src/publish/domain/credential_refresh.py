"""Credentials that the store rejects in the middle of a run are resolved again, from the first source on.

A run stays with the store it started on: credentials for another endpoint or region end it.
"""

from __future__ import annotations

from collections.abc import Callable

from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, CredentialsRejected
from publish.domain.ports import Store


class CredentialRefresher:
    """The `refresh` of a `RetryingStore` (s3.12). Takes one call at a time."""

    def __init__(
        self,
        first: Credentials,
        resolve: Callable[[], tuple[str, Credentials]],
        connect: Callable[[Credentials], Store],
        log: Callable[[str], None],
    ) -> None:
        """`first`: the credentials that the run started with. `resolve` returns a source's name and its credentials."""
        self._current = first
        self._store: Store | None = None
        self._resolve = resolve
        self._connect = connect
        self._log = log

    def __call__(self, rejection: CredentialsRejected, rejected: Store) -> Store:
        """The store, connected with fresh credentials. Raises CredentialsError, or CredentialsRejected if unchanged.

        `rejected`: the store that the request was sent to. If another request has had it replaced meanwhile, the
        sources are not asked again.
        """
        if self._store is not None and rejected is not self._store:
            return self._store
        self._log(f"the store rejected the credentials ({rejection.code}); resolving the sources again")
        source, fresh = self._resolve()
        for field, at_start, now in (
            ("endpoint", self._current.endpoint, fresh.endpoint),
            ("region", self._current.region, fresh.region),
        ):
            if now != at_start:
                raise CredentialsError(f"{source}: its {field} differs from the one this run started with")
        unchanged = fresh == self._current
        if unchanged and not rejection.resend_unchanged:
            raise CredentialsRejected(
                f"{rejection}; the credentials of {source} are unchanged", rejection.code, refreshable=False
            )
        self._store = self._connect(fresh)
        self._current = fresh
        self._log(f"the credentials of {source} are unchanged" if unchanged else f"now using credentials from {source}")
        return self._store

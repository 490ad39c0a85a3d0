"""Credentials that the store rejects in the middle of a run are resolved again, from the start.

A run stays with the store it began on: credentials for another endpoint or region end it.
"""

from __future__ import annotations

from collections.abc import Callable

from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, CredentialsRejected
from publish.domain.ports import Store


class CredentialRefresher:
    """What `Requests` asks for a store that accepts it again (S6)."""

    def __init__(
        self,
        first: Credentials,
        resolve: Callable[[], tuple[str, Credentials]],
        connect: Callable[[Credentials], Store],
        say: Callable[[str], None],
    ) -> None:
        """`first` is what the run began with; `resolve` asks the sources, as `credentials.resolve_credentials` does."""
        self._endpoint = first.endpoint
        self._region = first.region
        self._resolve = resolve
        self._connect = connect
        self._say = say

    def __call__(self, refusal: CredentialsRejected) -> Store:
        """The store, with what the sources say now. Raises CredentialsError."""
        self._say(f"the store rejected the credentials ({refusal.code}); resolving the sources again")
        source, renewed = self._resolve()
        for field, began, now in (
            ("endpoint", self._endpoint, renewed.endpoint),
            ("region", self._region, renewed.region),
        ):
            if now != began:
                raise CredentialsError(f"{source}: its {field} is another than the run began with")
        store = self._connect(renewed)
        self._say(f"the credentials are now those of {source}")
        return store

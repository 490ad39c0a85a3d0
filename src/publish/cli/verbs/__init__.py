"""The verbs, one module each, in the order of help."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.verbs.common import Verb

NAMES = ("run", "begin", "resolve", "watch", "publish", "prune", "log", "verify", "retract", "probe")


def load(name: str) -> Verb:
    """The verb `name`, one of NAMES. Each run imports one verb only."""
    verb: Verb = import_module(f"publish.cli.verbs.{name}").VERB
    return verb

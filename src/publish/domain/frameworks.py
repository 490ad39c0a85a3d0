"""How each framework names a save's folder, and what makes a save complete."""

from __future__ import annotations

import re
from collections.abc import Callable

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import FormatError
from publish.domain.light_typing import NamedTuple
from publish.domain.ports import Store
from publish.domain.trainer_state import MAX_BYTES, global_step

TRAINER_STATE = b"trainer_state.json"
METADATA = b".metadata"
# Transformers 5 keeps this in a save that pre-emption began, until the save is whole.
INCOMPLETE = b"checkpoint-is-incomplete.txt"
# The files that say a save is complete: the first to go when it is removed (prune.6).
MARKERS = (TRAINER_STATE, METADATA)


class Save(NamedTuple):
    """A save's folder. Saves compare by step, of equals by path, which is relative to the root."""

    step: int
    path: bytes


class Framework(NamedTuple):
    """What `-framework` chooses."""

    folder: re.Pattern[bytes]
    """The whole name of a save's folder; its last group that took part is the step."""

    shortest: bytes
    """As short as such a name can be."""

    is_complete: Callable[[Store, Save], bool]
    """Raises FormatError, with the fault alone, for a save that can never be complete."""

    def step_of(self, name: bytes) -> int | None:
        """The step of a folder, or None for one that is not a save's."""
        match = self.folder.fullmatch(name)
        if match is None or match.lastindex is None:
            return None
        step = int(match[match.lastindex])
        return step if step <= MAX_UINT64 else None


def _hf_is_complete(store: Store, save: Save) -> bool:
    """Whether the state is whole and names this step, and no pre-emption save is under way."""
    try:
        content = store.read(save.path + b"/" + TRAINER_STATE, MAX_BYTES + 1)
        step = None if content is None else global_step(content)
    except FormatError as fault:
        raise FormatError(f"{TRAINER_STATE.decode()}: {fault}") from fault
    if step is None:
        return False
    if step != save.step:
        raise FormatError(f"{TRAINER_STATE.decode()}: global_step is not the step of the folder: {step}")
    # The order matters: the sentinel is written before the state and removed after it.
    return not store.exists(save.path + b"/" + INCOMPLETE)


def _dcp_is_complete(store: Store, save: Save) -> bool:
    """Whether `.metadata` has content: a power loss can leave it empty."""
    return bool(store.size(save.path + b"/" + METADATA))


FRAMEWORKS = {
    "hf": Framework(re.compile(rb"checkpoint-([0-9]+)"), b"checkpoint-0", _hf_is_complete),
    "dcp": Framework(
        re.compile(
            rb"(?:(?:step|global_step|checkpoint|ckpt|iter|iteration)[-_=]?|ep[0-9]+-ba)?([0-9]+)"
            rb"|(?:epoch=[0-9]+-)?step=([0-9]+)(?:\.ckpt)?"
        ),
        b"0",
        _dcp_is_complete,
    ),
}

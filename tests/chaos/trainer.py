"""A training job that saves all the time, as a Trainer does: weights first, then its state, in two pieces.

`python -m tests.chaos.trainer`, with the variables of `publish run`. CHAOS_STORE names the S3 server of an S3 root.
Ends with NOT_RESUMABLE if the save to resume from is not there or not whole.
"""

from __future__ import annotations

import json
import os
import sys
import time

from tests.chaos.places import Place, is_whole, place_of, step_of, weights

NOT_RESUMABLE = 77
_PAUSE = 0.15  # seconds


def main() -> int:
    """Trains until it is killed."""
    saves, resume = os.environ["DISPATCH_SAVES"], os.environ["DISPATCH_RESUME"]
    place = place_of(os.environ["CHAOS_PLACE"])
    step = 0
    if resume:
        if not is_whole(place, place.relative(resume)):
            return NOT_RESUMABLE
        step = step_of(resume)
    while True:
        step += 1
        save(place, place.relative(saves), step)
        time.sleep(_PAUSE)


def save(place: Place, saves: str, step: int) -> None:
    """Writes one save."""
    folder = f"{saves}/checkpoint-{step}"
    place.write(f"{folder}/weights", weights(step))
    place.write(f"{folder}/trainer_state.json", json.dumps({"global_step": step, "log_history": ["x"] * 200}).encode())


if __name__ == "__main__":
    sys.exit(main())

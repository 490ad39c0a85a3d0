"""Keeps the process's memory, with the credentials in it, out of core dumps and from other processes of the user."""

import ctypes

_PR_SET_DUMPABLE = 4  # PR_SET_DUMPABLE(2const)


def forbid_dumps() -> None:
    """Not by RLIMIT_CORE: the trainer that `run` starts would inherit it. execve(2) makes that one dumpable again."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)

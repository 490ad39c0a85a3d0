from __future__ import annotations

import threading
from time import monotonic

import pytest

from publish.cli.deadline import Deadline
from publish.domain.errors import ConfigError, CredentialsError, TimedOut


def test_work_that_ends_in_time_gives_what_it_gives() -> None:
    assert Deadline(monotonic(), 60).hold(lambda: 5) == 5
    assert Deadline(monotonic(), 60).hold(lambda: None) is None


def test_what_work_raises_is_raised() -> None:
    def fail() -> None:
        raise ConfigError("this")

    with pytest.raises(ConfigError, match="this"):
        Deadline(monotonic(), 60).hold(fail)


def test_work_that_hangs_is_given_up_and_its_step_and_the_limit_are_named() -> None:
    """S5"""
    deadline = Deadline(monotonic(), 0.05)
    never = threading.Event()

    def hang() -> None:
        deadline.at_source("file:/creds")
        deadline.at_request("list pub/")
        never.wait()

    with pytest.raises(TimedOut) as error:
        deadline.hold(hang)
    assert str(error.value) == "list pub/: out of time (-timeout 0.05s)"
    never.set()


def test_a_source_that_hangs_is_an_error_about_the_credentials() -> None:
    """C6"""
    deadline = Deadline(monotonic(), 0.05)
    never = threading.Event()

    def hang() -> None:
        deadline.at_source("file:/creds")
        never.wait()

    with pytest.raises(CredentialsError) as error:
        deadline.hold(hang)
    assert str(error.value) == "file:/creds: out of time (-timeout 0.05s)"
    never.set()


def test_time_that_has_passed_before_counts() -> None:
    """S5: from the start of the process"""
    deadline = Deadline(monotonic() - 100, 60)
    never = threading.Event()
    assert deadline.left() < -39
    with pytest.raises(TimedOut):
        deadline.hold(never.wait)
    deadline.restart()
    assert 59 < deadline.left() <= 60
    never.set()


def test_the_longest_limit_of_all_is_no_trouble() -> None:
    """F2"""
    assert Deadline(monotonic(), (2**63 - 1) / 10**9).hold(lambda: 5) == 5

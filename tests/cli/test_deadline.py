from __future__ import annotations

import signal
import threading
from time import monotonic

import pytest

from publish.cli.deadline import Deadline
from publish.domain.errors import ConfigError, CredentialsError, TimedOut


def test_the_result_of_work_that_ends_in_time_is_returned() -> None:
    assert Deadline(monotonic(), 60).run(lambda: 5) == 5
    assert Deadline(monotonic(), 60).run(lambda: None) is None


def test_an_error_of_the_work_is_raised() -> None:
    def fail() -> None:
        raise ConfigError("this")

    with pytest.raises(ConfigError, match="this"):
        Deadline(monotonic(), 60).run(fail)


def test_a_time_out_names_the_step_and_the_limit() -> None:
    """s3.11"""
    deadline = Deadline(monotonic(), 0.05)
    never = threading.Event()

    def hang() -> None:
        deadline.enter_source("file:/creds")
        deadline.enter_request("list pub/")
        never.wait()

    with pytest.raises(TimedOut) as error:
        deadline.run(hang)
    assert str(error.value) == "list pub/: out of time (-timeout 0.05s)"
    never.set()


def test_a_source_that_hangs_is_a_credentials_error() -> None:
    """creds.6"""
    deadline = Deadline(monotonic(), 0.05)
    never = threading.Event()

    def hang() -> None:
        deadline.enter_source("file:/creds")
        never.wait()

    with pytest.raises(CredentialsError) as error:
        deadline.run(hang)
    assert str(error.value) == "file:/creds: out of time (-timeout 0.05s)"
    never.set()


def test_time_before_the_work_counts() -> None:
    """s3.11: from the start of the process"""
    deadline = Deadline(monotonic() - 100, 60)
    never = threading.Event()
    assert deadline.remaining() < -39
    with pytest.raises(TimedOut):
        deadline.run(never.wait)
    deadline.restart()
    assert 59 < deadline.remaining() <= 60
    never.set()


def test_the_longest_possible_limit_works() -> None:
    """cli.2"""
    assert Deadline(monotonic(), (2**63 - 1) / 10**9).run(lambda: 5) == 5


def test_without_a_limit_the_work_runs_on_the_same_thread() -> None:
    assert Deadline(monotonic() - 100, None).run(threading.get_ident) == threading.get_ident()


def test_an_unbounded_deadline_holds_from_when_it_is_bound() -> None:
    """nfs.5: also for the work under way, and once for all that follows"""
    deadline = Deadline(monotonic() - 100, 0.05, bounded=False)
    assert not deadline.is_over
    never = threading.Event()

    def bind_and_hang() -> None:
        deadline.bind()
        never.wait()

    with pytest.raises(TimedOut):
        deadline.run(bind_and_hang)
    assert deadline.is_over
    deadline.restart()
    deadline.bind()
    with pytest.raises(TimedOut):
        deadline.run(never.wait)
    never.set()


def test_what_is_left_when_a_bounded_deadline_is_bound_is_not_more_than_before() -> None:
    """s3.11, nfs.5: the scan under way keeps its own limit; the last one counts from the signal."""
    deadline = Deadline(monotonic() - 50, 60)
    deadline.bind()
    assert deadline.remaining() <= 10
    deadline.restart()
    assert 59 < deadline.remaining() <= 60
    assert deadline.started <= monotonic()


def test_the_work_takes_no_signal_from_the_main_thread() -> None:
    """run.4: a worker that is still ending would take the SIGCHLD of a COMMAND that ends at once, and drop it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    mask = Deadline(monotonic(), 60).run(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP} <= mask
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before

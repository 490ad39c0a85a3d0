"""The name of an execution (env.1)."""

from __future__ import annotations

import pytest

from publish.cli import goflag
from publish.cli.verbs.common import ATTEMPT, attempt_name
from publish.domain.errors import UsageError


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "/", "a\n", "\x00", "a\x1fb", "\x7f", "\n"])
def test_an_attempt_that_is_not_a_folder_name_is_rejected(text: str) -> None:
    """env.1"""
    with pytest.raises(UsageError, match="-attempt or DISPATCH_ATTEMPT"):
        attempt_name(goflag.parse((ATTEMPT,), ["-attempt", text], {}))


@pytest.mark.parametrize("text", ["a", "...", ".a", "try 4", "é", "\udcff", "a:b", "-x"])
def test_an_attempt_may_have_any_other_name(text: str) -> None:
    """env.1"""
    name = attempt_name(goflag.parse((ATTEMPT,), [], {"DISPATCH_ATTEMPT": text}))
    assert name == text.encode("utf-8", "surrogateescape")

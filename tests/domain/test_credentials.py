"""C: the list of sources, the rules of the fields, the first that answers."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.credentials import (
    Credentials,
    DirectorySpec,
    VaultSpec,
    check_fields,
    parse_credentials,
    parse_creds,
    resolve_credentials,
)
from publish.domain.errors import CredentialsError, SourceUnavailable
from publish.domain.vault_url import parse_vault_url

CANARY = "canary-7f3a"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": CANARY}
CREDENTIALS = Credentials("AKIDEXAMPLE", CANARY, None, None, "us-east-1")


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


# The list


def test_items_keep_their_order_and_their_text() -> None:
    """creds.1, creds.4."""
    vault = "https://vault.example:8200/team/s3?auth=kubernetes&role=training"
    assert parse_creds(f"secret:/var/run/secrets/s3,file:conf/s3,vault:{vault}", b"/home/u") == [
        DirectorySpec("secret", "secret:/var/run/secrets/s3", b"/var/run/secrets/s3"),
        DirectorySpec("file", "file:conf/s3", b"/home/u/conf/s3"),
        VaultSpec(f"vault:{vault}", parse_vault_url(vault)),
    ]


@pytest.mark.parametrize(
    ("location", "cwd", "path"),
    [
        ("/a/b", b"/w", b"/a/b"),
        ("a/b", b"/w", b"/w/a/b"),
        ("a", b"/", b"/a"),
        ("./a", b"/w", b"/w/./a"),
        ("../a", b"/w", b"/w/../a"),
        ("~/a", b"/w", b"/w/~/a"),
        ("a:b", b"/w", b"/w/a:b"),
        ("/a%2Cb", b"/w", b"/a%2Cb"),
        (" /a", b"/w", b"/w/ /a"),
        ("/a\udcffb", b"/w", b"/a\xffb"),
        ("a", b"/w\xff", b"/w\xff/a"),
    ],
)
def test_a_directory_is_taken_literally_and_against_the_working_directory(
    location: str, cwd: bytes, path: bytes
) -> None:
    """creds.7."""
    assert parse_creds(f"secret:{location},file:{location}", cwd) == [
        DirectorySpec("secret", f"secret:{location}", path),
        DirectorySpec("file", f"file:{location}", path),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "-creds item 1 is empty"),
        (",", "-creds item 1 is empty"),
        ("secret:/a,", "-creds item 2 is empty"),
        ("secret:/a,,file:/b", "-creds item 2 is empty"),
        ("/a", "-creds item 1 has no colon"),
        ("secret:/a,file", "-creds item 2 has no colon"),
        ("secret:", "-creds item 1 has no location after secret:"),
        ("file:", "-creds item 1 has no location after file:"),
        ("vault:", "-creds item 1 has no location after vault:"),
        (":/a", "-creds item 1: unknown kind (expected secret, file or vault)"),
        ("valt:/a", "-creds item 1: unknown kind (expected secret, file or vault): valt"),
        ("SECRET:/a", "unknown kind"),
        (" secret:/a", "unknown kind"),
        ("secret:/a, file:/b", "-creds item 2: unknown kind"),
        (f"{CANARY}:x", "unknown kind (expected secret, file or vault)"),
        (f"AKID:{CANARY}", "unknown kind"),
        (f"https://user:{CANARY}@vault.example/", "unknown kind"),
        ("vault:/a", "-creds item 1 (vault): must start with http"),
        (
            f"secret:/a,vault:https://u:{CANARY}@h/p?auth=approle&approle=/d",
            "-creds item 2 (vault): must not contain a user name",
        ),
        (f"vault:https://h/p?auth=approle&approle=/d&proxy=http://u:{CANARY}@p", "(vault): invalid proxy URL"),
        ("vault:https://h/p?auth=approle&approle=/a,b", "-creds item 2 has no colon"),
    ],
)
def test_an_invalid_list_is_refused_by_the_number_of_its_item(text: str, fault: str) -> None:
    """creds.6, cli.9."""
    with pytest.raises(CredentialsError) as raised:
        parse_creds(text, b"/w")
    assert fault in str(raised.value)
    assert CANARY not in said(raised.value)


@given(st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_text_is_a_list_or_one_error(text: str) -> None:
    """creds.6: the items together are the text again."""
    try:
        items = parse_creds(text, b"/w")
    except CredentialsError:
        return
    assert ",".join(item.name for item in items) == text


# The fields


def test_the_two_required_fields_are_enough() -> None:
    """creds.2, creds.3: the endpoint is AWS's own, the region us-east-1."""
    assert parse_credentials(KEYS) == CREDENTIALS


def test_all_five_fields_are_taken() -> None:
    """creds.2."""
    fields = {**KEYS, "session_token": "t/+=", "endpoint": "http://s3.example:9000", "region": "eu-central-1"}
    assert parse_credentials(fields) == Credentials(
        "AKIDEXAMPLE", CANARY, "t/+=", "http://s3.example:9000", "eu-central-1"
    )


def test_credentials_show_no_secret() -> None:
    """cli.9."""
    credentials = Credentials("AKIDEXAMPLE", CANARY, f"t{CANARY}", "http://s3.example", "us-east-1")
    for text in (repr(credentials), str(credentials), f"{credentials}", repr([credentials])):
        assert CANARY not in text
        assert "http://s3.example" in text


@pytest.mark.parametrize("field", ["access_key_id", "secret_access_key"])
def test_a_missing_field_is_named(field: str) -> None:
    """creds.2."""
    fields = {name: value for name, value in KEYS.items() if name != field}
    with pytest.raises(CredentialsError, match=f"missing field: {field}"):
        parse_credentials(fields)


@pytest.mark.parametrize("field", ["aws_access_key_id", "Region", "", "region ", "data"])
def test_any_other_field_is_refused_and_named(field: str) -> None:
    """creds.2."""
    with pytest.raises(CredentialsError) as raised:
        parse_credentials({**KEYS, field: CANARY})
    expected = "access_key_id, endpoint, region, secret_access_key, session_token"
    assert str(raised.value) == f"unknown field (expected {expected}): {field}"
    assert CANARY not in said(raised.value)


@pytest.mark.parametrize("field", ["access_key_id", "secret_access_key", "session_token", "endpoint", "region"])
@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "empty"),
        (" ", "whitespace"),
        (f"{CANARY} ", "whitespace"),
        (f" {CANARY}", "whitespace"),
        (f"{CANARY}\n", "whitespace"),
        (f"{CANARY}\r", "whitespace"),
        (f"{CANARY}\tx", "whitespace"),
        (f"{CANARY}\u00a0x", "whitespace"),
        (f"{CANARY}\u2028x", "whitespace"),
        (f"{CANARY}\0", "unprintable"),
        (f"{CANARY}\x7f", "unprintable"),
        (f"\ufeff{CANARY}", "unprintable"),
        (f"{CANARY}\ud800", "unprintable"),
    ],
)
def test_an_invalid_value_is_refused_by_its_field_and_never_quoted(field: str, value: str, fault: str) -> None:
    """creds.2, cli.9."""
    with pytest.raises(CredentialsError, match=f"{fault}.*: {field}$") as raised:
        parse_credentials({**KEYS, field: value})
    assert CANARY not in said(raised.value)


@pytest.mark.parametrize("field", ["access_key_id", "session_token"])
def test_fields_sent_in_headers_must_be_ascii(field: str) -> None:
    with pytest.raises(CredentialsError, match=f"not ASCII: {field}") as raised:
        parse_credentials({**KEYS, field: f"{CANARY}é"})
    assert CANARY not in said(raised.value)


def test_a_secret_key_may_be_any_printable_text() -> None:
    assert parse_credentials({**KEYS, "secret_access_key": "pässwörd"}).secret_access_key == "pässwörd"


@pytest.mark.parametrize(
    "endpoint",
    [
        "s3.example",
        "s3://s3.example",
        f"https://u:{CANARY}@s3.example",
        "https://s3.example/",
        "https://s3.example/bucket",
        "https://s3.example?x",
        "https://s3.example#x",
        "https://s3.example:99999",
        "https://no..such",
        "https://",
    ],
)
def test_an_endpoint_is_a_server_and_nothing_more(endpoint: str) -> None:
    """creds.3, cli.9."""
    with pytest.raises(CredentialsError, match=r"invalid endpoint \(expected http\(s\)://HOST\[:PORT\]\)") as raised:
        parse_credentials({**KEYS, "endpoint": endpoint})
    assert CANARY not in said(raised.value)


@pytest.mark.parametrize("endpoint", ["http://my_store:9000", "https://s3.a_b.example"])
def test_an_endpoint_host_with_an_underscore_is_refused(endpoint: str) -> None:
    """creds.3, creds.4."""
    with pytest.raises(CredentialsError, match="underscore: endpoint"):
        parse_credentials({**KEYS, "endpoint": endpoint})


@pytest.mark.parametrize("region", ["eu_west", "-a", "a-", "a.b", "a/b", "x@evil.example", "12", "a" * 64, "é"])
def test_a_region_that_is_not_a_host_label_is_refused(region: str) -> None:
    """creds.3: AWS's regional endpoint is made of it."""
    with pytest.raises(CredentialsError, match="invalid region"):
        parse_credentials({**KEYS, "region": region})


@pytest.mark.parametrize("region", ["us-east-1", "a", "fr-par", "EU", "1a", "a" * 63])
def test_any_host_label_is_a_region(region: str) -> None:
    assert parse_credentials({**KEYS, "region": region}).region == region


def test_the_same_rules_hold_for_other_fields() -> None:
    """vault.7: an AppRole directory's."""
    check_fields({"role_id": "r", "secret_id": "s"}, ("role_id", "secret_id"))
    with pytest.raises(CredentialsError, match=r"unknown field \(expected role_id, secret_id\): region"):
        check_fields({"role_id": "r", "secret_id": "s", "region": "x"}, ("role_id", "secret_id"))


# The first that answers


class Scripted:
    """A source that answers or raises what it was told."""

    def __init__(self, name: str, answer: Credentials | Exception) -> None:
        self.name = name
        self._answer = answer
        self.budgets: list[float] = []

    def read(self, budget: float) -> Credentials:
        self.budgets.append(budget)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def forever() -> float:
    return 60.0


def test_the_first_available_source_is_used_and_no_other_is_read() -> None:
    """creds.4."""
    first = Scripted("secret:/a", SourceUnavailable("no such directory"))
    second = Scripted("file:/b", CREDENTIALS)
    third = Scripted("file:/c", CREDENTIALS)
    assert resolve_credentials([first, second, third], forever) == ("file:/b", CREDENTIALS)
    assert third.budgets == []


def test_an_invalid_source_stops_the_run_and_is_named() -> None:
    """creds.4."""
    second = Scripted("file:/b", CREDENTIALS)
    with pytest.raises(CredentialsError, match=r"^secret:/a: empty field: region$"):
        resolve_credentials([Scripted("secret:/a", CredentialsError("empty field: region")), second], forever)
    assert second.budgets == []


def test_if_no_source_is_available_each_is_named_with_its_reason() -> None:
    """creds.4."""
    sources = [
        Scripted("secret:/a", SourceUnavailable("no such directory")),
        Scripted("vault:https://v/p?auth=kubernetes&role=r", SourceUnavailable("connection refused")),
    ]
    with pytest.raises(CredentialsError) as raised:
        resolve_credentials(sources, forever)
    assert str(raised.value) == (
        "no credentials found: secret:/a: no such directory; "
        "vault:https://v/p?auth=kubernetes&role=r: connection refused"
    )


def test_each_source_may_use_half_of_the_remaining_time() -> None:
    """vault.4."""
    left = iter([8.0, 4.0, 2.0])
    sources = [Scripted(f"secret:/{name}", SourceUnavailable("gone")) for name in "abc"]
    with pytest.raises(CredentialsError):
        resolve_credentials(sources, lambda: next(left))
    assert [source.budgets for source in sources] == [[4.0], [2.0], [1.0]]


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_a_source_with_no_time_left_is_not_read(left: float) -> None:
    """creds.6: running out of time is an error of the credentials here."""
    source = Scripted("secret:/a", CREDENTIALS)
    with pytest.raises(CredentialsError, match=r"^secret:/a: no time left to read it$"):
        resolve_credentials([source], lambda: left)
    assert source.budgets == []


def test_each_name_is_announced_before_its_source_is_read() -> None:
    told: list[str] = []
    sources = [
        Scripted("secret:/a", SourceUnavailable("gone")),
        Scripted("file:/b", CREDENTIALS),
        Scripted("c", CREDENTIALS),
    ]
    enter: Callable[[str], None] = told.append
    resolve_credentials(sources, forever, enter)
    assert told == ["secret:/a", "file:/b"]

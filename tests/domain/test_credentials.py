"""C: the list of sources, the rules of the fields, the first that answers."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.credentials import (
    Credentials,
    FileItem,
    SecretItem,
    VaultItem,
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


def test_a_list_is_its_items_in_order_each_named_as_it_was_written() -> None:
    """C1, C4."""
    vault = "https://vault.example:8200/team/s3?auth=kubernetes&role=training"
    assert parse_creds(f"secret:/var/run/secrets/s3,file:conf/s3,vault:{vault}", b"/home/u") == [
        SecretItem("secret:/var/run/secrets/s3", b"/var/run/secrets/s3"),
        FileItem("file:conf/s3", b"/home/u/conf/s3"),
        VaultItem(f"vault:{vault}", parse_vault_url(vault)),
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
    """C7."""
    assert parse_creds(f"secret:{location},file:{location}", cwd) == [
        SecretItem(f"secret:{location}", path),
        FileItem(f"file:{location}", path),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "item 1 of the list is empty"),
        (",", "item 1 of the list is empty"),
        ("secret:/a,", "item 2 of the list is empty"),
        ("secret:/a,,file:/b", "item 2 of the list is empty"),
        ("/a", "item 1 of the list has no colon"),
        ("secret:/a,file", "item 2 of the list has no colon"),
        ("secret:", "item 1 of the list has no location after secret:"),
        ("file:", "item 1 of the list has no location after file:"),
        ("vault:", "item 1 of the list has no location after vault:"),
        (":/a", "item 1 of the list is of an unknown kind (secret, file and vault are known)"),
        ("valt:/a", "item 1 of the list is of an unknown kind (secret, file and vault are known): valt"),
        ("SECRET:/a", "unknown kind"),
        (" secret:/a", "unknown kind"),
        ("secret:/a, file:/b", "item 2 of the list is of an unknown kind"),
        (f"{CANARY}:x", "unknown kind (secret, file and vault are known)"),
        (f"AKID:{CANARY}", "unknown kind"),
        (f"https://user:{CANARY}@vault.example/", "unknown kind"),
        ("vault:/a", "item 1 of the list (vault): it does not start with http"),
        (
            f"secret:/a,vault:https://u:{CANARY}@h/p?auth=approle&approle=/d",
            "item 2 of the list (vault): it has userin",
        ),
        (f"vault:https://h/p?auth=approle&approle=/d&proxy=http://u:{CANARY}@p", "(vault): a proxy is http"),
        ("vault:https://h/p?auth=approle&approle=/a,b", "item 2 of the list has no colon"),
    ],
)
def test_a_list_that_does_not_parse_is_refused_by_the_place_of_the_item(text: str, fault: str) -> None:
    """C6, F9."""
    with pytest.raises(CredentialsError) as raised:
        parse_creds(text, b"/w")
    assert fault in str(raised.value)
    assert CANARY not in said(raised.value)


@given(st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_text_is_a_list_or_one_error(text: str) -> None:
    """C6: the items together are the text again."""
    try:
        items = parse_creds(text, b"/w")
    except CredentialsError:
        return
    assert ",".join(item.name for item in items) == text


# The fields


def test_the_two_required_fields_are_enough() -> None:
    """C2, C3: the endpoint is AWS's own, the region us-east-1."""
    assert parse_credentials(KEYS) == CREDENTIALS


def test_all_five_fields_are_taken() -> None:
    """C2."""
    fields = {**KEYS, "session_token": "t/+=", "endpoint": "http://s3.example:9000", "region": "eu-central-1"}
    assert parse_credentials(fields) == Credentials(
        "AKIDEXAMPLE", CANARY, "t/+=", "http://s3.example:9000", "eu-central-1"
    )


def test_credentials_show_no_secret() -> None:
    """F9."""
    credentials = Credentials("AKIDEXAMPLE", CANARY, f"t{CANARY}", "http://s3.example", "us-east-1")
    for text in (repr(credentials), str(credentials), f"{credentials}", repr([credentials])):
        assert CANARY not in text
        assert "http://s3.example" in text


@pytest.mark.parametrize("field", ["access_key_id", "secret_access_key"])
def test_a_missing_field_is_named(field: str) -> None:
    """C2."""
    fields = {name: value for name, value in KEYS.items() if name != field}
    with pytest.raises(CredentialsError, match=f"the field is missing: {field}"):
        parse_credentials(fields)


@pytest.mark.parametrize("field", ["aws_access_key_id", "Region", "", "region ", "data"])
def test_any_other_field_is_refused_and_named(field: str) -> None:
    """C2."""
    with pytest.raises(CredentialsError) as raised:
        parse_credentials({**KEYS, field: CANARY})
    assert str(raised.value).startswith(
        "not a field (access_key_id, secret_access_key, session_token, endpoint, region"
    )
    assert str(raised.value).endswith(f": {field}")
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
        (f"{CANARY}\0", "printed"),
        (f"{CANARY}\x7f", "printed"),
        (f"\ufeff{CANARY}", "printed"),
        (f"{CANARY}\ud800", "printed"),
    ],
)
def test_a_value_that_none_may_have_is_refused_by_its_field_and_never_quoted(
    field: str, value: str, fault: str
) -> None:
    """C2, F9."""
    with pytest.raises(CredentialsError, match=f"{fault}.*: {field}$") as raised:
        parse_credentials({**KEYS, field: value})
    assert CANARY not in said(raised.value)


@pytest.mark.parametrize("field", ["access_key_id", "session_token"])
def test_what_goes_out_in_a_header_is_ascii(field: str) -> None:
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
    """C3, F9."""
    with pytest.raises(CredentialsError, match=r"the endpoint is http\(s\)://HOST\[:PORT\] and nothing") as raised:
        parse_credentials({**KEYS, "endpoint": endpoint})
    assert CANARY not in said(raised.value)


@pytest.mark.parametrize("endpoint", ["http://my_store:9000", "https://s3.a_b.example"])
def test_an_endpoint_whose_host_no_request_can_be_sent_to_is_refused_by_its_field(endpoint: str) -> None:
    """C3, C4."""
    with pytest.raises(CredentialsError, match="underscore: endpoint"):
        parse_credentials({**KEYS, "endpoint": endpoint})


@pytest.mark.parametrize("region", ["eu_west", "-a", "a-", "a.b", "a/b", "x@evil.example", "12", "a" * 64, "é"])
def test_a_region_is_a_host_label_since_it_stands_in_a_host(region: str) -> None:
    """C3: AWS's regional endpoint is made of it."""
    with pytest.raises(CredentialsError, match="the region is letters"):
        parse_credentials({**KEYS, "region": region})


@pytest.mark.parametrize("region", ["us-east-1", "a", "fr-par", "EU", "1a", "a" * 63])
def test_any_host_label_is_a_region(region: str) -> None:
    assert parse_credentials({**KEYS, "region": region}).region == region


def test_the_same_rules_hold_for_other_fields() -> None:
    """V7: an AppRole directory's."""
    check_fields({"role_id": "r", "secret_id": "s"}, ("role_id", "secret_id"))
    with pytest.raises(CredentialsError, match=r"not a field \(role_id, secret_id are\): region"):
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


def test_the_first_source_that_answers_is_used_and_no_other_is_asked() -> None:
    """C4."""
    first = Scripted("secret:/a", SourceUnavailable("no such directory"))
    second = Scripted("file:/b", CREDENTIALS)
    third = Scripted("file:/c", CREDENTIALS)
    assert resolve_credentials([first, second, third], forever) == ("file:/b", CREDENTIALS)
    assert third.budgets == []


def test_a_source_that_is_wrong_stops_the_run_and_is_named() -> None:
    """C4."""
    second = Scripted("file:/b", CREDENTIALS)
    with pytest.raises(CredentialsError, match=r"^secret:/a: the field is empty: region$"):
        resolve_credentials([Scripted("secret:/a", CredentialsError("the field is empty: region")), second], forever)
    assert second.budgets == []


def test_when_none_answers_each_is_named_with_its_reason() -> None:
    """C4."""
    sources = [
        Scripted("secret:/a", SourceUnavailable("no such directory")),
        Scripted("vault:https://v/p?auth=kubernetes&role=r", SourceUnavailable("connection refused")),
    ]
    with pytest.raises(CredentialsError) as raised:
        resolve_credentials(sources, forever)
    assert str(raised.value) == (
        "no source answered: secret:/a: no such directory; vault:https://v/p?auth=kubernetes&role=r: connection refused"
    )


def test_each_source_may_take_half_of_the_time_that_is_left() -> None:
    """V4."""
    left = iter([8.0, 4.0, 2.0])
    sources = [Scripted(f"secret:/{name}", SourceUnavailable("gone")) for name in "abc"]
    with pytest.raises(CredentialsError):
        resolve_credentials(sources, lambda: next(left))
    assert [source.budgets for source in sources] == [[4.0], [2.0], [1.0]]


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_a_source_with_no_time_left_is_not_asked(left: float) -> None:
    """C6: running out of time is an error of the credentials here."""
    source = Scripted("secret:/a", CREDENTIALS)
    with pytest.raises(CredentialsError, match=r"^secret:/a: no time was left to ask it$"):
        resolve_credentials([source], lambda: left)
    assert source.budgets == []


def test_each_name_is_told_at_its_turn() -> None:
    told: list[str] = []
    sources = [
        Scripted("secret:/a", SourceUnavailable("gone")),
        Scripted("file:/b", CREDENTIALS),
        Scripted("c", CREDENTIALS),
    ]
    enter: Callable[[str], None] = told.append
    resolve_credentials(sources, forever, enter)
    assert told == ["secret:/a", "file:/b"]

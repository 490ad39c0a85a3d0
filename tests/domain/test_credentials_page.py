"""docs/credentials.md says what the grammar and the fields are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from publish.domain import vault_url
from publish.domain.credentials import DEFAULT_REGION, FIELDS, parse_creds
from publish.domain.vault_url import SERVICE_ACCOUNT_TOKEN, KubernetesAuth, parse_vault_url

PAGE = (Path(__file__).parents[2] / "docs" / "credentials.md").read_text()


def table(heading: str) -> dict[str, str]:
    """The rows of the first table below a heading, by their first cell."""
    rows = re.findall(
        r"^\| `(\w+)` \|(.*)\|$", PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0], re.MULTILINE
    )
    return dict(rows)


def test_every_key_of_a_vault_location_is_in_the_table_with_its_default() -> None:
    """vault.2."""
    rows = table("Vault")
    assert set(rows) == set(vault_url._KEYS)
    location = parse_vault_url("https://vault.example/p?auth=kubernetes&role=r")
    assert isinstance(location.login, KubernetesAuth)
    assert f"`{location.mount}`" in rows["mount"]
    assert f"`{location.kv}` " in rows["kv"].rpartition("|")[2]
    assert SERVICE_ACCOUNT_TOKEN.decode() in rows["token"]


def test_every_field_is_in_the_table() -> None:
    """creds.2, creds.3."""
    rows = table("Fields")
    assert set(rows) == FIELDS
    assert {name for name, cells in rows.items() if "required" in cells} == {"access_key_id", "secret_access_key"}
    assert DEFAULT_REGION in rows["region"]


@pytest.mark.parametrize("creds", re.findall(r"-creds ['\"]?([a-z]+:[^'\"\s`]+)", PAGE))
def test_every_example_parses(creds: str) -> None:
    """creds.1, vault.1."""
    assert parse_creds(creds, b"/w")


def test_there_is_an_example_for_each_way_to_log_in() -> None:
    examples = " ".join(re.findall(r"-creds ['\"](vault:.*)['\"]", PAGE))
    assert "auth=kubernetes" in examples
    assert "auth=approle" in examples

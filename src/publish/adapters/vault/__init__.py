"""Credentials from a KV secret of Vault (V). hvac, and all that it imports, is imported when a source is read."""

from __future__ import annotations

from publish.adapters.vault.source import VaultSource

__all__ = ["VaultSource"]

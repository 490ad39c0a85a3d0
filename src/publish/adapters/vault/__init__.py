"""Credentials from a KV secret of Vault. hvac is imported when a source is read."""

from publish.adapters.vault.source import VaultSource

__all__ = ["VaultSource"]

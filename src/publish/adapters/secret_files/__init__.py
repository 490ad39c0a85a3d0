"""Credentials and other secrets in files of this node."""

from publish.adapters.secret_files.files import read_secret_file
from publish.adapters.secret_files.mounted_secret import SecretDirectory
from publish.adapters.secret_files.private_directory import PrivateDirectory, read_private_directory
from publish.domain.credentials import DirectorySpec, Source

__all__ = ["PrivateDirectory", "SecretDirectory", "directory_source", "read_private_directory", "read_secret_file"]


def directory_source(spec: DirectorySpec) -> Source:
    """The source that an item of `-creds` describes. Does not access it."""
    if spec.kind == "secret":
        return SecretDirectory(spec.name, spec.path)
    return PrivateDirectory(spec.name, spec.path)

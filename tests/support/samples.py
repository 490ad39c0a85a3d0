"""Saves and files that the real frameworks wrote, kept in tests/samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from publish.domain.wholeness import Verdict, check_save
from tests.support.fakes import FakeStore

SAMPLES = Path(__file__).parent.parent / "samples"

# Folders of the samples that are whole saves.
WHOLE_SAVES = ["hf/checkpoint-5", "dcp/step-100-overwritten", "dcp/step-200", "dcp/nocoll-300", "dcp/hf-fsdp2-sharded"]


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def sample_files(folder: str) -> dict[bytes, bytes]:
    """The files of a sample by their paths below it."""
    base = SAMPLES / folder
    return {bytes(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def verdict_on(files: Mapping[bytes, bytes], save: bytes = b"exec/1/save") -> Verdict:
    """The verdict on a save that has these files."""
    store = FakeStore(page_size=3)
    store.files.update({save + b"/" + path: content for path, content in files.items()})
    return check_save(store, save, map)


def faults_of(files: Mapping[bytes, bytes], save: bytes = b"exec/1/save") -> list[tuple[str, str]]:
    """What is wrong with it, as (file, why)."""
    return [(fault.file.decode(), fault.why) for fault in verdict_on(files, save).faults]

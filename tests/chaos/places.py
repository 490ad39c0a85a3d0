"""Checkpoint roots as the chaos sees them, without the program: it writes saves, and reads everything."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Protocol

from publish.domain.entry import Entry
from publish.domain.root import S3Root
from tests.support.s3_roots import Place as S3Place
from tests.support.servers import Key, behind

_WEIGHTS = 4000  # numbers


class Place(Protocol):
    """A root."""

    def relative(self, location: str) -> str:
        """The path below the root of what the program calls `location`."""

    def write(self, path: str, content: bytes) -> None: ...

    def read(self, path: str) -> bytes | None: ...

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder; none if it is missing."""

    def folders(self, folder: str) -> list[str]:
        """The folders directly in a folder."""


class Directory:
    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def relative(self, location: str) -> str:
        return os.path.relpath(location, self._path)

    def write(self, path: str, content: bytes) -> None:
        file = self._path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as opened:
            opened.write(content[: len(content) // 2])
            opened.flush()
            time.sleep(0.005)  # a save under way, for the others to meet
            opened.write(content[len(content) // 2 :])

    def read(self, path: str) -> bytes | None:
        try:
            return (self._path / path).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(self._path / folder)
        except FileNotFoundError:
            return []

    folders = names


class Server:
    """An S3 server in another process."""

    def __init__(self, endpoint: str, key: Key) -> None:
        self.endpoint = endpoint
        self.key = key

    def stop(self) -> None:
        """It is not ours."""


class Bucket:
    def __init__(self, place: S3Place) -> None:
        self._bucket = place.root.bucket
        self._base = place.root.prefix + "/"
        self._url = place.url
        self._client = behind(place.server)

    def relative(self, location: str) -> str:
        return location.removeprefix(f"{self._url}/")

    def write(self, path: str, content: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._base + path, Body=content)

    def read(self, path: str) -> bytes | None:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=self._base + path)["Body"].read()
        except self._client.exceptions.NoSuchKey:
            return None

    def names(self, folder: str) -> list[str]:
        base = f"{self._base}{folder}/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=base, Delimiter="/")
        # The folder itself may be listed, too.
        return [name for page in pages for item in page.get("Contents", ()) if (name := item["Key"].removeprefix(base))]

    def folders(self, folder: str) -> list[str]:
        base = f"{self._base}{folder}/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=base, Delimiter="/")
        found = [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", ())]
        return [prefix.removeprefix(base).removesuffix("/") for prefix in found]


def describe_bucket(place: S3Place) -> str:
    """For CHAOS_PLACE."""
    return json.dumps([place.server.endpoint, *place.server.key, *place.root])


def place_of(text: str) -> Place:
    """The place that CHAOS_PLACE describes: a directory's path, or a bucket."""
    if text.startswith("/"):
        return Directory(text)
    endpoint, access_key_id, secret, bucket, prefix = json.loads(text)
    return Bucket(S3Place(Server(endpoint, Key(access_key_id, secret)), S3Root(bucket, prefix)))


def log_of(place: Place, namespace: str = "pub") -> list[Entry]:
    """The entries, in their order."""
    return sorted(Entry.parse(name.encode()) for name in place.names(namespace))


def weights(step: int) -> bytes:
    return b"%d\n" % step * _WEIGHTS


def step_of(save: str) -> int:
    return int(save.rstrip("/").rpartition("checkpoint-")[2])


def is_whole(place: Place, save: str) -> bool:
    """Whether all that the trainer wrote is there."""
    state = place.read(f"{save}/trainer_state.json")
    try:
        step = json.loads(state or b"{}").get("global_step")
    except ValueError:
        return False
    return step == step_of(save) and place.read(f"{save}/weights") == weights(step)

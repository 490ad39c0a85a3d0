"""What reads bytes that others send or leave, each as a function of one input.

A target returns for every input. It lets pass only the error that its reader declares, and fails if a secret is
in the text of that error. How long it takes and how much memory, its callers watch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import cast

from botocore.exceptions import ClientError
from botocore.model import StructureShape
from botocore.parsers import RestXMLParser

from publish.adapters.s3.errors import ErrorTranslator
from publish.adapters.s3.responses import (
    IncompleteResponse,
    NotAnS3Response,
    RepeatedToken,
    parse_listing,
    parse_time,
    size_of,
    validate_response,
)
from publish.adapters.vault.responses import Response, json_body, parse_login, parse_secret
from publish.domain import (
    dcp_metadata,
    ocdbt,
    pickle_reader,
    rank_sets,
    safetensors,
    torch_zip,
    trainer_state,
    weight_index,
)
from publish.domain.candidate import fitting
from publish.domain.credentials import parse_creds
from publish.domain.entry import MAX_UINT64, Entry
from publish.domain.errors import ConfigError, CredentialsError, FormatError, PublishError
from publish.domain.executions import claimant, recorded
from publish.domain.file_rules import rule_for
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace, Store
from publish.domain.redaction import Redactor
from publish.domain.root import parse_s3_url
from publish.domain.server_url import parse_origin, parse_proxy_url
from publish.domain.vault_url import parse_vault_url

SECRET = "CANARY/ab+cd=="
_NOTHING = StructureShape("x", {"type": "structure", "members": {}})
_LISTING = SimpleNamespace(name="ListObjectsV2", http={"method": "GET"})


def _check_words(declared: type[PublishError], read: Callable[[], object]) -> None:
    """The declared error may be raised; its words must not hold the secret."""
    words = ""
    try:
        read()
    except declared as error:
        words = str(error)
    assert SECRET not in words


def entry_name(data: bytes) -> None:
    """layout.2"""
    with suppress(FormatError):
        entry = Entry.parse(data)
        assert Entry.of(entry.epoch, entry.step, entry.path) == entry


class _Records:
    """A store in which every record has one content."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_record(self, namespace: Namespace, name: bytes) -> bytes:
        del namespace, name
        return self._content


def records(data: bytes) -> None:
    """begin.4: the record of an attempt and of an epoch. What an epoch names can be the name of a file."""
    store = cast("Store", _Records(data))
    with suppress(FormatError):
        execution = recorded(store, b"a")
        assert execution is not None
        assert execution.record.removesuffix(b"\n").endswith(data.removesuffix(b"\n").partition(b" ")[2])
    with suppress(FormatError):
        attempt = claimant(store, 1)
        assert os.path.basename(attempt) == attempt
        assert not {b"", b".", b".."} & {attempt}
        assert b"\0" not in attempt


def s3_listing(data: bytes) -> None:
    """s3.15"""
    response = {"headers": {}, "body": data, "status_code": 200}
    parsed: dict[str, object] = {}
    with suppress(NotAnS3Response, IncompleteResponse, RepeatedToken):
        validate_response(_LISTING, response, parsed)
        if parsed:
            listing = parse_listing(parsed, "run/pub/")  # type: ignore[arg-type]  # as botocore passes it on
            for item in listing.objects:
                size_of(item)
                parse_time(item.get("LastModified", ""))


def s3_error(data: bytes) -> None:
    """s3.13, cli.9: whatever the library raises is translated, and what the store echoes is redacted."""
    translator = ErrorTranslator([SECRET])
    error: Exception
    try:
        parsed = RestXMLParser().parse({"status_code": 403, "headers": {}, "body": data}, _NOTHING)
        error = ClientError(parsed, "PutObject")
    except Exception as fault:  # noqa: BLE001  (the program catches whatever botocore raises)
        error = fault
    assert SECRET not in str(translator.translate(error, "PUT x", write=True))


def vault_answer(data: bytes) -> None:
    """vault.8, vault.9"""
    redactor = Redactor()
    redactor.add([SECRET])
    readers: list[Callable[[Mapping[str, object]], object]] = [
        parse_login,
        lambda body: parse_secret(body, 1, redactor),
        lambda body: parse_secret(body, 2, redactor),
    ]
    for status in (200, 403):
        for read in readers:
            _check_words(CredentialsError, partial(_read, read, Response(status, "http://vault/x", "", data), redactor))


def _read(read: Callable[[Mapping[str, object]], object], response: Response, redactor: Redactor) -> object:
    return read(json_body(response, "login", redactor))


def redaction(data: bytes) -> None:
    """cli.9: the secret is struck out of any text around it, and striking twice changes nothing."""
    redactor = Redactor()
    redactor.add([SECRET])
    around = data.decode("utf-8", "surrogateescape")
    struck = redactor.redact(around + SECRET + around)
    assert SECRET not in struck


def trainer_state_json(data: bytes) -> None:
    """watch.4"""
    with suppress(FormatError):
        trainer_state.global_step(data)


def pickled_metadata(data: bytes) -> None:
    """verify.5"""
    with suppress(FormatError):
        pickle_reader.load(data)
    with suppress(FormatError):
        dcp_metadata.file_ends(data)


def safetensors_header(data: bytes) -> None:
    """verify.6"""
    size = safetensors.header_size(data[:8], len(data))
    safetensors.fault(data[8 : 8 + size] if isinstance(size, int) else data, len(data))


def file_names(data: bytes) -> None:
    """watch.2, watch.3, verify.6: what the names of files and folders, one on each line, say of saves."""
    names = data.split(b"\n")
    for framework in FRAMEWORKS.values():
        for candidate in fitting(framework.layouts, b"exec/a", names):
            assert 0 <= candidate.save.step <= MAX_UINT64
    for file in names:
        rule_for(file)
    for fault in rank_sets.missing(names):
        assert fault.file in names


def zip_tail(data: bytes) -> None:
    """verify.6"""
    torch_zip.fault(data[-torch_zip.TAIL_SIZE :], len(data))


def weights(data: bytes) -> None:
    """verify.6"""
    names = weight_index.shards(data)
    if isinstance(names, frozenset):
        assert not any(b"/" in name for name in names)


def manifest(data: bytes) -> None:
    """verify.6"""
    ocdbt.fault(data)


def creds(data: bytes) -> None:
    """creds.6, cli.9"""
    text = data.decode("utf-8", "surrogateescape")
    with suppress(CredentialsError):
        parse_creds(text, b"/work")
    _check_words(CredentialsError, lambda: parse_creds(f"vault:https://user:{SECRET}@{text}", b"/work"))


def urls(data: bytes) -> None:
    """root.2, creds.3, proxy.2, vault.3"""
    text = data.decode("utf-8", "surrogateescape")
    parsers: tuple[Callable[[str], object], ...] = (parse_origin, parse_proxy_url, parse_vault_url)
    for parse in parsers:
        with suppress(ConfigError):
            parse(text)
        _check_words(ConfigError, partial(parse, f"https://user:{SECRET}@{text}"))
    with suppress(PublishError):
        parse_s3_url(b"s3://" + data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        entry_name,
        records,
        s3_listing,
        s3_error,
        vault_answer,
        redaction,
        trainer_state_json,
        pickled_metadata,
        safetensors_header,
        file_names,
        zip_tail,
        weights,
        manifest,
        creds,
        urls,
    )
}

"""A botocore client that sends what `publish` decides, and nothing that a machine's set-up adds.

The only file of the package that touches botocore's untyped parts.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

from publish import __version__
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Caps in seconds for one connection to be made, and for one silence of the store.
CONNECT_CAP = 10.0
READ_CAP = 60.0
# As many requests as a parallel prune has under way; more would wait for a connection.
_CONNECTIONS = 32
# The only version of S3's API that there is (botocore/data/s3).
_API_VERSION = "2006-03-01"
_OTHER_SUCCESSES = range(201, 300)


# What a listing says of each object and nobody reads; it takes longer to parse than the keys do.
_UNREAD = re.compile(rb"<(StorageClass|Owner|ChecksumAlgorithm|ChecksumType)>.*?</\1>", re.DOTALL)


# botocore takes any other word for false, which would end a listing early.
_IS_TRUNCATED = re.compile(rb"<IsTruncated>\s*(?:true|false)\s*</IsTruncated>")


class NotAnS3Response(Exception):
    """Something else than an S3 store gave the answer, such as a web server."""


class IncompleteResponse(Exception):
    """Part of the answer did not come. An end in the middle of the headers looks like their end."""


class Line(NamedTuple):
    """How the store is reached: `proxy` is a URL or None, `trust` a PEM bundle.

    `timeout` and `reach`: seconds for an answer and for a connection, each under a cap.
    """

    proxy: str | None
    trust: str
    timeout: float
    reach: float = CONNECT_CAP


def connect(credentials: Credentials, line: Line) -> S3Client:
    """A client for these credentials; no request is sent.

    Raises CredentialsError for a region or an endpoint that is none.
    """
    try:
        client: Any = _session(aws=credentials.endpoint is None).create_client(
            "s3",
            region_name=credentials.region,
            endpoint_url=credentials.endpoint,
            aws_access_key_id=credentials.access_key_id,
            aws_secret_access_key=credentials.secret_access_key,
            aws_session_token=credentials.session_token,
            verify=line.trust,
            config=botocore.config.Config(**_settings(line)),
        )
    except (botocore.exceptions.InvalidRegionError, botocore.exceptions.EndpointResolutionError) as error:
        raise CredentialsError("the field region is not that of a store") from error
    except ValueError as error:
        raise CredentialsError(f"not an endpoint whose host can be one: {credentials.endpoint}") from error
    events = client.meta.events
    events.register("before-call.s3", _pin)
    events.register_last("before-call.s3.DeleteObjects", _digest)
    events.register_first("request-created.s3", _expect_nothing)
    # By wildcards, so that it runs before botocore's own handler, which makes a 500 of a 200 that it cannot read.
    events.register("before-parse.*.*", _check_answer)
    return cast("S3Client", client)


def _settings(line: Line) -> dict[str, Any]:
    """`Config`'s arguments; the stubs know fewer than botocore does."""
    return {
        "signature_version": "s3v4",
        "s3": {
            "addressing_style": "path",
            "us_east_1_regional_endpoint": "regional",
            "disable_s3_express_session_auth": True,
        },
        "user_agent": f"publish/{__version__}",
        # The domain decides what is sent again; a hidden second send would end in a 412 nobody can explain.
        "retries": {"mode": "standard", "total_max_attempts": 1},
        # Otherwise bodies are chunked and carry checksums that compatible stores refuse.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "proxies": {} if line.proxy is None else {"http": line.proxy, "https": line.proxy},
        "proxies_config": {"proxy_ca_bundle": line.trust},
        "connect_timeout": min(line.timeout, line.reach, CONNECT_CAP),
        "read_timeout": min(line.timeout, READ_CAP),
        "max_pool_connections": _CONNECTIONS,
        "ignore_configured_endpoint_urls": True,
        "disable_request_compression": True,
        "use_dualstack_endpoint": False,
        "use_fips_endpoint": False,
        "defaults_mode": "legacy",
    }


class _Models(botocore.loaders.Loader):
    """botocore's own S3 model, found without a walk over the folders of 400 other services.

    It is read by whoever imported botocore, so from inside a zip too, where there are no folders.
    """

    def __init__(self, *, aws: bool) -> None:
        """`aws`: the client is to find out itself where its service is."""
        # Neither AWS_DATA_PATH nor ~/.aws/models.
        super().__init__(extra_search_paths=[self.BUILTIN_DATA_PATH], include_default_search_paths=False)
        self._aws = aws

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002  (botocore's signature)
        return ["s3"]

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:  # noqa: ANN401  (parsed JSON)
        model: Any = super().load_service_model(service_name, type_name, api_version or _API_VERSION)
        if type_name == "service-2":
            # The rest of a listed object is not read. Its date stays text: to parse it takes longer than all else.
            members = model["shapes"]["Object"]["members"]
            model["shapes"]["Object"]["members"] = {name: members[name] for name in ("Key", "Size", "ETag")}
            model["shapes"]["Object"]["members"]["LastModified"] = {"shape": "ETag"}
        return model

    def load_data_with_path(self, name: str) -> tuple[Any, str]:
        if name == "endpoints" and not self._aws:
            # Where AWS's services are: it takes longer to read than all the rest.
            return {"partitions": []}, ""
        path = f"{self.BUILTIN_DATA_PATH}/{name}.json"
        importer: Any = botocore.loaders.__loader__
        for suffix, unpack in ((".gz", gzip.decompress), ("", bytes)):
            try:
                content: bytes = unpack(importer.get_data(path + suffix))
            except OSError:
                continue
            return json.loads(content), path
        raise botocore.exceptions.DataNotFoundError(data_path=name)


def _session(*, aws: bool) -> botocore.session.Session:
    """A session whose every setting is botocore's default, whatever variables and files say."""
    settings: Any = botocore.session.Session.SESSION_VARIABLES
    constants = {name: (None, None, default, convert) for name, (_, _, default, convert) in settings.items()}
    constants["config_file"] = constants["credentials_file"] = (None, None, "/dev/null", None)
    session = botocore.session.Session(session_vars=constants)
    session.register_component("data_loader", _Models(aws=aws))
    return session


def _pin(params: dict[str, Any], **_: object) -> None:
    """Keeps botocore from following a redirect, which it does without end, and from other signatures."""
    context = params["context"]
    context.setdefault("s3_redirect", {})["redirected"] = True
    # A bucket's name alone (`…--x-s3`) makes it sign for another service.
    context["auth_type"] = "v4"
    context.setdefault("signing", {})["signing_name"] = "s3"


def _digest(params: dict[str, Any], **_: object) -> None:
    """Content-MD5, which every store takes (AWS, DeleteObjects), instead of the newer checksums."""
    params["context"]["checksum"] = {}
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()


def _expect_nothing(request: Any, **_: object) -> None:  # noqa: ANN401  (botocore's AWSRequest)
    """Takes `Expect: 100-continue` off: some stores never answer it."""
    if "Expect" in request.headers:
        del request.headers["Expect"]


def _check_answer(operation_model: Any, response_dict: dict[str, Any], **_: object) -> None:  # noqa: ANN401  (botocore's model)
    """Raises for a partial response, or a web page, that botocore would accept as an answer from a store."""
    headers, body = response_dict["headers"], response_dict["body"]
    succeeded = response_dict["status_code"] == HTTPStatus.OK
    operation = operation_model.name
    # An object that is read may be a web page, and an empty answer may call itself one (moto).
    tagged = "etag" in headers and (operation != "PutObject" or not body)
    if succeeded and not tagged and headers.get("content-type", "").lower().startswith("text/html"):
        if not isinstance(body, bytes):
            body.close()
        raise NotAnS3Response("the answer is a web page")
    if not isinstance(body, bytes) or operation_model.http["method"] == "HEAD":
        return
    length = headers.get("content-length", "")
    if length.isdigit() and len(body) < int(length):
        raise IncompleteResponse(f"{len(body)} of {length} bytes came")
    if operation in {"ListObjectsV2", "PutObject"} and response_dict["status_code"] in _OTHER_SUCCESSES:
        raise IncompleteResponse(f"HTTP status {response_dict['status_code']} is no answer to this")
    if operation == "ListObjectsV2" and succeeded and b"<Error" not in body:
        if b"<ListBucketResult" not in body or not _IS_TRUNCATED.search(body):
            raise IncompleteResponse("the answer is no whole ListBucketResult")
        if b"<![CDATA[" not in body:
            response_dict["body"] = _UNREAD.sub(b"", body)
    # A quiet answer has no other sign of having been given by a store.
    if succeeded and operation == "DeleteObjects" and b"DeleteResult" not in body and b"<Error" not in body:
        raise IncompleteResponse("the answer has no DeleteResult")

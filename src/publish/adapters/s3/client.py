"""A botocore client whose requests depend on its arguments alone, not on the environment or on files.

All use of botocore's untyped parts is here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

from publish import __version__
from publish.adapters.s3.responses import read_body, validate_response
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Seconds, at most: to connect, and between two reads.
MAX_CONNECT_TIMEOUT = 10.0
MAX_READ_TIMEOUT = 60.0
# At least the workers of a parallel prune; further requests would wait for a connection.
_CONNECTIONS = 32
# The only version of S3's API (botocore/data/s3).
_API_VERSION = "2006-03-01"


class ConnectionSettings(NamedTuple):
    """How to reach the store. `proxy` is a URL or None, `ca_bundle` the path of a PEM bundle, times are in seconds."""

    proxy: str | None
    ca_bundle: str
    timeout: float
    connect_timeout: float = MAX_CONNECT_TIMEOUT


def connect(credentials: Credentials, settings: ConnectionSettings) -> S3Client:
    """A client for these credentials. Sends nothing. Raises CredentialsError for an invalid region or endpoint."""
    try:
        client: Any = _session(aws=credentials.endpoint is None).create_client(
            "s3",
            region_name=credentials.region,
            endpoint_url=credentials.endpoint,
            aws_access_key_id=credentials.access_key_id,
            aws_secret_access_key=credentials.secret_access_key,
            aws_session_token=credentials.session_token,
            verify=settings.ca_bundle,
            config=botocore.config.Config(**_config(settings)),
        )
    except (botocore.exceptions.InvalidRegionError, botocore.exceptions.EndpointResolutionError) as error:
        raise CredentialsError("invalid region") from error
    except ValueError as error:
        raise CredentialsError(f"invalid endpoint host: {credentials.endpoint}") from error
    events = client.meta.events
    events.register("before-call.s3", _disable_redirects_and_pin_sigv4)
    events.register_last("before-call.s3.DeleteObjects", _add_content_md5)
    events.register_first("request-created.s3", _drop_expect_header)
    events.register("before-send.s3", _BoundedSender(client._endpoint.http_session))  # noqa: SLF001  (its only way)
    # Wildcards sort before botocore's own handler, which turns a 200 that it cannot parse into a 500.
    events.register("before-parse.*.*", validate_response)
    return cast("S3Client", client)


def _config(settings: ConnectionSettings) -> dict[str, Any]:
    """`Config`'s arguments; the type stubs lack some of them."""
    return {
        "signature_version": "s3v4",
        "s3": {
            "addressing_style": "path",
            "us_east_1_regional_endpoint": "regional",
            "disable_s3_express_session_auth": True,
        },
        "user_agent": f"publish/{__version__}",
        # The domain retries. A hidden second put would meet the first one and get a 412.
        "retries": {"mode": "standard", "total_max_attempts": 1},
        # Otherwise bodies are aws-chunked and carry checksums that compatible stores refuse.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "proxies": {} if settings.proxy is None else {"http": settings.proxy, "https": settings.proxy},
        "proxies_config": {"proxy_ca_bundle": settings.ca_bundle},
        "connect_timeout": min(settings.timeout, settings.connect_timeout, MAX_CONNECT_TIMEOUT),
        "read_timeout": min(settings.timeout, MAX_READ_TIMEOUT),
        "max_pool_connections": _CONNECTIONS,
        "ignore_configured_endpoint_urls": True,
        "disable_request_compression": True,
        "use_dualstack_endpoint": False,
        "use_fips_endpoint": False,
        "defaults_mode": "legacy",
    }


class _BundledModelLoader(botocore.loaders.Loader):
    """Loads botocore's S3 model without a walk over the folders of 400 other services.

    It reads through botocore's importer, so it works in publish.pyz, where there are no folders.
    """

    def __init__(self, *, aws: bool) -> None:
        """`aws`: also load the endpoints of AWS's regions."""
        # Neither AWS_DATA_PATH nor ~/.aws/models.
        super().__init__(extra_search_paths=[self.BUILTIN_DATA_PATH], include_default_search_paths=False)
        self._aws = aws

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002  (botocore's signature)
        return ["s3"]

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:  # noqa: ANN401  (parsed JSON)
        model: Any = super().load_service_model(service_name, type_name, api_version or _API_VERSION)
        return model

    def load_data_with_path(self, name: str) -> tuple[Any, str]:
        if name == "endpoints" and not self._aws:
            # A large file: reading it takes longer than all the others.
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


class _BoundedSender:
    """Sends a request in botocore's place, which would read a body of any length."""

    def __init__(self, http_session: Any) -> None:  # noqa: ANN401  (botocore's)
        self._http_session = http_session

    def __call__(self, request: Any, event_name: str, **_: object) -> Any:  # noqa: ANN401  (botocore's)
        is_object = request.stream_output
        request.stream_output = True
        response = self._http_session.send(request)
        if not is_object or response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            operation = event_name.rpartition(".")[2]
            response._content = read_body(response.raw, response.status_code, operation)  # noqa: SLF001  (its only way)
        return response


def _session(*, aws: bool) -> botocore.session.Session:
    """A session with botocore's defaults, which reads no variable and no configuration file."""
    settings: Any = botocore.session.Session.SESSION_VARIABLES
    constants = {name: (None, None, default, convert) for name, (_, _, default, convert) in settings.items()}
    constants["config_file"] = constants["credentials_file"] = (None, None, "/dev/null", None)
    session = botocore.session.Session(session_vars=constants)
    session.register_component("data_loader", _BundledModelLoader(aws=aws))
    return session


def _disable_redirects_and_pin_sigv4(params: dict[str, Any], **_: object) -> None:
    """Botocore follows a redirect without a region until the stack ends, and signs for `--x-s3` as S3 Express."""
    context = params["context"]
    context.setdefault("s3_redirect", {})["redirected"] = True
    context["auth_type"] = "v4"
    context.setdefault("signing", {})["signing_name"] = "s3"


def _add_content_md5(params: dict[str, Any], **_: object) -> None:
    """Content-MD5 instead of CRC32: every store accepts it (AWS, "DeleteObjects")."""
    params["context"]["checksum"] = {}
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()


def _drop_expect_header(request: Any, **_: object) -> None:  # noqa: ANN401  (botocore's AWSRequest)
    """`Expect: 100-continue` stalls on stores that never send the 100 (docs/s3-quirks.md)."""
    if "Expect" in request.headers:
        del request.headers["Expect"]

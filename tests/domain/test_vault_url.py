"""vault.1 to vault.3: the grammar of `vault:` locations."""

from __future__ import annotations

import traceback
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publish.domain.errors import ConfigError
from publish.domain.server_url import Origin
from publish.domain.vault_url import AppRoleAuth, KubernetesAuth, VaultUrl, parse_vault_url

K8S = "auth=kubernetes&role=training"
LOGIN = KubernetesAuth("training")
SERVER = Origin("https", "vault.example", 8200)


def at(path: str = "team/s3", query: str = K8S) -> VaultUrl:
    return parse_vault_url(f"https://vault.example:8200/{path}?{query}")


def test_kubernetes_defaults() -> None:
    """vault.2."""
    location = at()
    assert location == VaultUrl(SERVER, "team/s3", LOGIN, "secret", 2, None, None, None)
    assert location.login == KubernetesAuth(
        "training", b"/var/run/secrets/kubernetes.io/serviceaccount/token", "kubernetes"
    )


def test_approle_defaults() -> None:
    """vault.2."""
    location = parse_vault_url("http://vault/s3?auth=approle&approle=/home/u/.config/vault-approle")
    assert location == VaultUrl(Origin("http", "vault", None), "s3", AppRoleAuth(b"/home/u/.config/vault-approle"))
    assert location.login.mount == "approle"


def test_every_key_is_parsed() -> None:
    """vault.2."""
    location = at(
        query="mount=kv&auth=kubernetes&role=r&ca=/ca.pem&proxy=http%3A%2F%2Fproxy.example%3A3128"
        "&kv=1&authmount=k8s/east&namespace=team/a&token=/run/token"
    )
    assert location == VaultUrl(
        SERVER,
        "team/s3",
        KubernetesAuth("r", b"/run/token", "k8s/east"),
        mount="kv",
        kv=1,
        ca=b"/ca.pem",
        proxy="http://proxy.example:3128",
        namespace="team/a",
    )


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("team/s3", "team/s3"),
        ("a%2Cb", "a,b"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("a+b", "a+b"),
        ("a%3Fb%23c", "a?b#c"),
        ("a;b=c&d", "a;b=c&d"),
        ("caf%C3%A9", "café"),
        ("café", "café"),
        ("...", "..."),
        (".hidden/a..b", ".hidden/a..b"),
    ],
)
def test_the_path_is_decoded_once(path: str, meant: str) -> None:
    """vault.3."""
    assert at(path).path == meant


@pytest.mark.parametrize(
    ("query", "role"),
    [
        ("auth=kubernetes&role=a+b", "a b"),
        ("auth=kubernetes&role=a%2Bb", "a+b"),
        ("auth=kubernetes&role=a%2526b", "a%26b"),
        ("auth=kubernetes&role=a%26auth%3Dapprole", "a&auth=approle"),
        ("auth=kubernetes&role=a=b", "a=b"),
        ("auth=kubernetes&role=a%3Bb", "a;b"),
        ("%61uth=kubernetes&role=r", "r"),
    ],
)
def test_in_the_query_a_plus_is_a_space_and_escapes_are_decoded_once(query: str, role: str) -> None:
    """vault.3."""
    login = at(query=query).login
    assert isinstance(login, KubernetesAuth)
    assert login.role == role


def test_a_file_that_is_not_utf8_keeps_its_name() -> None:
    """vault.2: paths of this node are bytes, escaped or as the shell gave them."""
    assert at(query=f"{K8S}&token=/a%FFb").login == KubernetesAuth("training", b"/a\xffb")
    assert at(query=f"{K8S}&ca=/a\udcffb").ca == b"/a\xffb"


@pytest.mark.parametrize(
    ("path", "query", "fault"),
    [
        ("", K8S, "path is empty"),
        ("/team", K8S, "segment"),
        ("team/", K8S, "segment"),
        ("team//s3", K8S, "segment"),
        ("team%2F%2Fs3", K8S, "segment"),
        (".", K8S, "segment"),
        ("team/..", K8S, "segment"),
        ("team/../s3", K8S, "segment"),
        ("team/%2e%2E/s3", K8S, "segment"),
        ("a b", K8S, "whitespace"),
        ("a%20b", K8S, "whitespace"),
        ("a\nb", K8S, "whitespace"),
        ("a%0Ab", K8S, "whitespace"),
        ("a%C2%A0b", K8S, "whitespace"),
        ("a%00b", K8S, "control"),
        ("a%7Fb", K8S, "control"),
        ("a%C2%80b", K8S, "control"),
        ("a%b", K8S, "invalid percent-escape"),
        ("a%", K8S, "invalid percent-escape"),
        ("a%4", K8S, "invalid percent-escape"),
        ("a%zz", K8S, "invalid percent-escape"),
        ("a%FFb", K8S, "not UTF-8"),
        ("team/s3", "", "auth=kubernetes or auth=approle is required"),
        ("team/s3", "role=training", "auth=kubernetes or auth=approle is required"),
        ("team/s3", "auth=token&role=r", "auth= must be kubernetes or approle"),
        ("team/s3", "auth=Kubernetes&role=r", "auth= must be"),
        ("team/s3", "auth=kubernetes", "auth=kubernetes requires role="),
        ("team/s3", "auth=approle", "auth=approle requires approle="),
        ("team/s3", "auth=approle&approle=/d&role=r", "role= cannot be used"),
        ("team/s3", "auth=approle&approle=/d&token=/t", "token= cannot be used"),
        ("team/s3", f"{K8S}&approle=/d", "approle= cannot be used"),
        ("team/s3", f"{K8S}&role=other", "role= is given twice"),
        ("team/s3", f"{K8S}&kv=2&kv=2", "kv= is given twice"),
        ("team/s3", "auth=kubernetes&role=", "role= has no value"),
        ("team/s3", "auth=kubernetes&role", "role= has no value"),
        ("team/s3", f"{K8S}&namespace", "namespace= has no value"),
        ("team/s3", f"{K8S}&address=x", "unknown key in the query (expected approle, auth, authmount"),
        ("team/s3", f"{K8S}&address=x", "token): address"),
        ("team/s3", f"{K8S}&Role=x", "unknown key"),
        ("team/s3", f"{K8S}&", "unknown key"),
        ("team/s3", f"{K8S}&&kv=1", "unknown key"),
        ("team/s3", f"{K8S}&=x", "unknown key"),
        ("team/s3", f"{K8S};kv=1", "unescaped ;"),
        ("team/s3", f"{K8S}&mount=%", "invalid percent-escape"),
        ("team/s3", f"{K8S}&mount=%g0", "invalid percent-escape"),
        ("team/s3", f"{K8S}&%zz=1", "invalid percent-escape"),
        ("team/s3", "auth=kubernetes&role=%FF", "role= is not UTF-8"),
        ("team/s3", f"{K8S}&mount=%FF", "mount= is not UTF-8"),
        ("team/s3", f"{K8S}&kv=3", "kv= must be 1 or 2"),
        ("team/s3", f"{K8S}&kv=02", "kv= must be 1 or 2"),
        ("team/s3", f"{K8S}&token=/a%00", "token= contains a NUL"),
        ("team/s3", f"{K8S}&ca=/a%00", "ca= contains a NUL"),
        ("team/s3", "auth=approle&approle=/a%00", "approle= contains a NUL"),
        ("team/s3", f"{K8S}#x", "fragment"),
        ("team/s3#x", K8S, "fragment"),
        *(
            ("team/s3", f"{K8S}&{key}={value}", f"{key}= {fault}")
            for key in ("mount", "authmount", "namespace")
            for value, fault in [
                ("a/", "has an empty"),
                ("/a", "has an empty"),
                ("a//b", "has an empty"),
                ("a/../b", "has an empty, . or .. segment"),
                (".", "has an empty, . or .. segment"),
                ("a+b", "contains whitespace"),
                ("a%09b", "contains whitespace"),
                ("a%01b", "contains whitespace or a control character"),
            ]
        ),
        *(
            ("team/s3", f"{K8S}&proxy={value}", "invalid proxy URL")
            for value in ("socks5://p", "http://u:hunter2@p", "http://p/", "p:3128", "%FF")
        ),
    ],
)
def test_every_other_location_is_refused_for_its_reason(path: str, query: str, fault: str) -> None:
    """vault.3, proxy.2."""
    with pytest.raises(ConfigError) as raised:
        at(path, query)
    assert fault in str(raised.value)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ("https://u:hunter2@vault.example", "user name"),
        ("vault.example:8200", "must start with"),
        ("ftp://u:hunter2@vault.example", "must start with"),
        ("https://", "host"),
        ("https://no..such", "host"),
        ("https://" + "a" * 64 + ".example", "host"),
        ("https://vault.example:99999", "port"),
        ("https://vault.example:", "port"),
        ("https://vault.exa\tmple", "host"),
        ("https:///", "host"),
    ],
)
def test_an_invalid_server_is_refused_and_never_quoted(server: str, fault: str) -> None:
    """vault.3, cli.9."""
    with pytest.raises(ConfigError, match=fault) as raised:
        parse_vault_url(f"{server}/team/s3?{K8S}")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_ca_without_tls_is_refused() -> None:
    """vault.3."""
    with pytest.raises(ConfigError, match="ca= requires https://"):
        parse_vault_url(f"http://vault.example/team/s3?{K8S}&ca=/ca.pem")


def test_a_location_without_a_query_is_refused() -> None:
    with pytest.raises(ConfigError, match="auth=kubernetes or auth=approle is required"):
        parse_vault_url("http://vault.example/team/s3")
    with pytest.raises(ConfigError, match="the path is empty"):
        parse_vault_url(f"http://vault.example?{K8S}")


_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_segment = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1).filter(
    lambda text: "/" not in text and text not in {".", ".."} and text.isprintable()
)
_inside = st.lists(_segment, min_size=1, max_size=3).map("/".join)
_file = st.binary(min_size=1).filter(lambda path: b"\0" not in path)
_login = st.one_of(st.builds(KubernetesAuth, _words, _file, _inside), st.builds(AppRoleAuth, _file, _inside))
_ports = st.none() | st.integers(1, 65535)
_locations = st.builds(
    VaultUrl,
    server=st.builds(Origin, st.just("https"), st.sampled_from(["vault", "10.0.0.1", "[::1]"]), _ports),
    path=_inside,
    login=_login,
    mount=_inside,
    kv=st.sampled_from([1, 2]),
    ca=st.none() | _file,
    proxy=st.none() | st.builds(Origin, st.just("http"), st.just("proxy"), _ports).map(str),
    namespace=st.none() | _inside,
)


def _text(location: VaultUrl) -> str:
    """A location that means the same, with every character escaped that may be."""
    login = location.login
    if isinstance(login, KubernetesAuth):
        keys = {"auth": b"kubernetes", "role": login.role.encode(), "token": login.token}
    else:
        keys = {"auth": b"approle", "approle": login.directory}
    keys |= {"authmount": login.mount.encode(), "mount": location.mount.encode(), "kv": b"%d" % location.kv}
    optional = {"ca": location.ca, "proxy": location.proxy, "namespace": location.namespace}
    keys |= {key: value if isinstance(value, bytes) else value.encode() for key, value in optional.items() if value}
    query = "&".join(f"{key}={quote(value)}" for key, value in keys.items())
    return f"{location.server}/{quote(location.path)}?{query}"


@given(_locations)
def test_a_formatted_location_parses_to_itself(location: VaultUrl) -> None:
    """vault.1, vault.2, vault.3: a comma is written %2C, so it can stand in a list."""
    text = _text(location)
    assert parse_vault_url(text) == location
    assert "," not in text


_argument = st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
_near = st.lists(
    st.sampled_from(
        [
            *"/?&=%#;@:+,. \nr\udcff",
            *("https://", "http://", "vault", "auth=kubernetes", "auth=approle", "role=", "approle=", "kv=1"),
            *("ca=/c", "proxy=http://p", "token=", "mount=", "%2F", "%2e", "%00", "%ff"),
        ]
    ),
    max_size=24,
).map("".join)


@given(_argument | _near | _near.map(lambda text: "https://vault/p?auth=kubernetes&role=r&" + text))
@example("https://vault/p?auth=kubernetes&role=r")
def test_any_text_is_one_location_or_one_error(text: str) -> None:
    """vault.3: what is taken means what its canonical text means, and nothing else is taken."""
    try:
        location = parse_vault_url(text)
    except ConfigError:
        return
    assert parse_vault_url(_text(location)) == location
    for inside in (location.path, location.mount, location.login.mount, location.namespace or "x"):
        assert not {"", ".", ".."} & set(inside.split("/"))
        assert inside.isprintable()
    assert str(location.server) == text[: len(str(location.server))]

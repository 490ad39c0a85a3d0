"""V1 to V3: the grammar of `vault:` locations."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publish.domain.errors import ConfigError
from publish.domain.server_url import Origin
from publish.domain.vault_url import AppRole, Kubernetes, VaultUrl, parse_vault_url

K8S = "auth=kubernetes&role=training"
LOGIN = Kubernetes("training")
SERVER = Origin("https", "vault.example", 8200)


def at(path: str = "team/s3", query: str = K8S) -> VaultUrl:
    return parse_vault_url(f"https://vault.example:8200/{path}?{query}")


def test_kubernetes_with_nothing_but_a_role_has_the_defaults_of_the_table() -> None:
    """V2."""
    location = at()
    assert location == VaultUrl(SERVER, "team/s3", LOGIN, "secret", 2, None, None, None)
    assert location.login == Kubernetes(
        "training", b"/var/run/secrets/kubernetes.io/serviceaccount/token", "kubernetes"
    )


def test_approle_with_nothing_but_a_directory_has_the_defaults_of_the_table() -> None:
    """V2."""
    location = parse_vault_url("http://vault/s3?auth=approle&approle=/home/u/.config/vault-approle")
    assert location == VaultUrl(Origin("http", "vault", None), "s3", AppRole(b"/home/u/.config/vault-approle"))
    assert location.login.mount == "approle"


def test_every_key_is_taken() -> None:
    """V2."""
    location = at(
        query="mount=kv&auth=kubernetes&role=r&ca=/ca.pem&proxy=http%3A%2F%2Fproxy.example%3A3128"
        "&kv=1&authmount=k8s/east&namespace=team/a&token=/run/token"
    )
    assert location == VaultUrl(
        SERVER,
        "team/s3",
        Kubernetes("r", b"/run/token", "k8s/east"),
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
    """V3."""
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
    """V3."""
    login = at(query=query).login
    assert isinstance(login, Kubernetes)
    assert login.role == role


def test_a_file_that_is_not_utf8_keeps_its_name() -> None:
    """V2: paths of this node are bytes, escaped or as the shell gave them."""
    assert at(query=f"{K8S}&token=/a%FFb").login == Kubernetes("training", b"/a\xffb")
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
        ("a%b", K8S, "no escape"),
        ("a%", K8S, "no escape"),
        ("a%4", K8S, "no escape"),
        ("a%zz", K8S, "no escape"),
        ("a%FFb", K8S, "not UTF-8"),
        ("team/s3", "", "auth= is missing"),
        ("team/s3", "role=training", "auth= is missing"),
        ("team/s3", "auth=token&role=r", "auth= is either kubernetes or approle"),
        ("team/s3", "auth=Kubernetes&role=r", "auth= is either"),
        ("team/s3", "auth=kubernetes", "role= is missing"),
        ("team/s3", "auth=approle", "approle= is missing"),
        ("team/s3", "auth=approle&approle=/d&role=r", "role= has no use"),
        ("team/s3", "auth=approle&approle=/d&token=/t", "token= has no use"),
        ("team/s3", f"{K8S}&approle=/d", "approle= has no use"),
        ("team/s3", f"{K8S}&role=other", "role= is there twice"),
        ("team/s3", f"{K8S}&kv=2&kv=2", "kv= is there twice"),
        ("team/s3", "auth=kubernetes&role=", "role= has no value"),
        ("team/s3", "auth=kubernetes&role", "role= has no value"),
        ("team/s3", f"{K8S}&namespace", "namespace= has no value"),
        ("team/s3", f"{K8S}&address=x", "unknown key (auth, role, approle"),
        ("team/s3", f"{K8S}&address=x", "are known): address"),
        ("team/s3", f"{K8S}&Role=x", "unknown key"),
        ("team/s3", f"{K8S}&", "unknown key"),
        ("team/s3", f"{K8S}&&kv=1", "unknown key"),
        ("team/s3", f"{K8S}&=x", "unknown key"),
        ("team/s3", f"{K8S};kv=1", "holds a ;"),
        ("team/s3", f"{K8S}&mount=%", "no escape"),
        ("team/s3", f"{K8S}&mount=%g0", "no escape"),
        ("team/s3", f"{K8S}&%zz=1", "no escape"),
        ("team/s3", "auth=kubernetes&role=%FF", "role= is not UTF-8"),
        ("team/s3", f"{K8S}&mount=%FF", "mount= is not UTF-8"),
        ("team/s3", f"{K8S}&kv=3", "kv= is either 1 or 2"),
        ("team/s3", f"{K8S}&kv=02", "kv= is either 1 or 2"),
        ("team/s3", f"{K8S}&token=/a%00", "token= holds a NUL"),
        ("team/s3", f"{K8S}&ca=/a%00", "ca= holds a NUL"),
        ("team/s3", "auth=approle&approle=/a%00", "approle= holds a NUL"),
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
                ("a+b", "holds whitespace"),
                ("a%09b", "holds whitespace"),
                ("a%01b", "holds whitespace or a control character"),
            ]
        ),
        *(
            ("team/s3", f"{K8S}&proxy={value}", "a proxy is http")
            for value in ("socks5://p", "http://u:hunter2@p", "http://p/", "p:3128", "%FF")
        ),
    ],
)
def test_every_other_location_is_refused_for_its_reason(path: str, query: str, fault: str) -> None:
    """V3, P2."""
    with pytest.raises(ConfigError) as raised:
        at(path, query)
    assert fault in str(raised.value)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ("https://u:hunter2@vault.example", "userinfo"),
        ("vault.example:8200", "does not start"),
        ("ftp://u:hunter2@vault.example", "does not start"),
        ("https://", "host"),
        ("https://no..such", "host"),
        ("https://" + "a" * 64 + ".example", "host"),
        ("https://vault.example:99999", "port"),
        ("https://vault.example:", "port"),
        ("https://vault.exa\tmple", "host"),
        ("https:///", "host"),
    ],
)
def test_a_server_that_cannot_be_one_is_refused_and_never_quoted(server: str, fault: str) -> None:
    """V3, F9."""
    with pytest.raises(ConfigError, match=fault) as raised:
        parse_vault_url(f"{server}/team/s3?{K8S}")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_private_root_has_no_use_without_tls() -> None:
    """V3."""
    with pytest.raises(ConfigError, match="ca= has no use with http://"):
        parse_vault_url(f"http://vault.example/team/s3?{K8S}&ca=/ca.pem")


def test_a_location_without_a_query_is_refused() -> None:
    with pytest.raises(ConfigError, match="auth= is missing"):
        parse_vault_url("http://vault.example/team/s3")
    with pytest.raises(ConfigError, match="the path is empty"):
        parse_vault_url(f"http://vault.example?{K8S}")


_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_segment = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1).filter(
    lambda text: "/" not in text and text not in {".", ".."} and text.isprintable()
)
_inside = st.lists(_segment, min_size=1, max_size=3).map("/".join)
_file = st.binary(min_size=1).filter(lambda path: b"\0" not in path)
_login = st.one_of(st.builds(Kubernetes, _words, _file, _inside), st.builds(AppRole, _file, _inside))
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


@given(_locations)
def test_what_it_prints_it_parses(location: VaultUrl) -> None:
    """V1 to V3; a comma is printed as %2C, so that it can stand in a list."""
    text = str(location)
    assert parse_vault_url(text) == location
    assert text.isascii()
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
    """V3: what is taken means what its canonical text means, and nothing else is taken."""
    try:
        location = parse_vault_url(text)
    except ConfigError:
        return
    assert parse_vault_url(str(location)) == location
    for inside in (location.path, location.mount, location.login.mount, location.namespace or "x"):
        assert not {"", ".", ".."} & set(inside.split("/"))
        assert inside.isprintable()
    assert str(location.server) == text[: len(str(location.server))]

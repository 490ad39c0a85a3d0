"""Usage errors and their exit status: cli.5, cli.6, env.1, root.1 to root.4, and each verb's positionals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Result, call

S3 = ("-checkpoint", "s3://bucket/run", "-creds", "secret:/does/not/exist")
NUMBERS = ("-epoch", "1", "-attempt", "a")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def refused(result: Result, status: int, why: str) -> None:
    assert (result.status, result.out) == (status, b"")
    assert why in result.notes[0]
    if status == 2:
        assert result.notes[1].startswith("usage: publish ")
        assert result.notes[2].startswith("run 'publish help")
    else:
        assert len(result.notes) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "no verb given"),
        ("--", "no verb given"),
        ("resolv", "unknown verb (did you mean resolve?): resolv"),
        ("Resolve", "unknown verb (did you mean resolve?): Resolve"),
        ("-checkpoint /tmp resolve", "unknown flag: -checkpoint"),
        ("help resolv", "unknown verb (did you mean resolve?): resolv"),
        ("help resolve prune", "help takes one verb: resolve prune"),
        ("help -x", "unknown flag: -x"),
        ("resolve -chekpoint /tmp", "unknown flag (did you mean -checkpoint?): -chekpoint"),
        ("version", "unknown verb: version"),
    ],
)
def test_an_unknown_verb_is_a_usage_error(line: str, why: str) -> None:
    """cli.8"""
    refused(call(*line.split()), 2, why)


@pytest.mark.parametrize("verb", ["resolve", "prune", "probe", "publish", "watch"])
@pytest.mark.parametrize("given", [(), ("-checkpoint", "")])
def test_every_verb_needs_a_root(verb: str, given: tuple[str, ...]) -> None:
    """root.1"""
    metavar = "s3://BUCKET/PREFIX" if verb == "probe" else "ROOT"
    refused(call(verb, *given), 2, f"-checkpoint {metavar} is required")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("resolve -checkpoint ROOT extra", "unexpected argument (flags must precede positionals): extra"),
        ("resolve -checkpoint ROOT -- -probe", "unexpected argument (flags must precede positionals): -probe"),
        ("prune -checkpoint ROOT extra -keep 3", "unexpected argument"),
        ("prune -checkpoint ROOT -keep 0", "-keep: must be at least 1: 0"),
        ("prune -checkpoint ROOT -keep -1", "-keep: not an unsigned decimal number: -1"),
        ("prune -checkpoint ROOT -epoch 3", "unknown flag: -epoch"),
        ("resolve -checkpoint ROOT -timeout 0s", "-timeout: must be above zero: 0s"),
        ("resolve -checkpoint ROOT -timeout 5", "-timeout: not a duration"),
        ("resolve -checkpoint ROOT -probe=perhaps", "-probe: expected true or false: perhaps"),
        ("resolve -checkpoint ROOT -probe", "-probe applies only to S3 roots; the root is a directory"),
        ("resolve -checkpoint ROOT -creds file:/x", "-creds applies only to S3 roots; the root is a directory"),
        ("resolve -checkpoint ROOT -creds nonsense", "-creds applies only to S3 roots; the root is a directory"),
        ("resolve -checkpoint ROOT -proxy http://host", "-proxy applies only to S3 roots; the root is a directory"),
        ("prune -checkpoint ROOT -proxy http://host", "-proxy applies only to S3 roots; the root is a directory"),
        ("probe -checkpoint ROOT", "probe applies only to S3 roots; the root is a directory"),
        ("probe -checkpoint ROOT/not/there", "probe applies only to S3 roots; the root is a directory"),
        ("resolve -checkpoint ROOT/not/there -probe", "-probe applies only to S3 roots; the root is a directory"),
        ("resolve -checkpoint s3://bucket/run", "-creds LIST is required"),
        ("probe -checkpoint s3://b/ -proxy http://host", "-creds LIST is required"),
        ("resolve -checkpoint s3://bucket/run -proxy ftp://host -creds file:/x", "-proxy: invalid proxy URL"),
        ("resolve -checkpoint s3://bucket/run -proxy http://host/ -creds file:/x", "-proxy: invalid proxy URL"),
        ("resolve -checkpoint s3://b/ -proxy http://host/ -creds nonsense", "-proxy: invalid proxy URL"),
        ("resolve -checkpoint gs://b/x -proxy http://host/", "-proxy: invalid proxy URL"),
        ("watch -checkpoint ROOT -epoch 1 -attempt a", "-framework NAME is required"),
        ("watch -checkpoint ROOT -epoch 1 -attempt a -framework HF", "nemo-rl or marker: HF"),
        ("watch -checkpoint ROOT -epoch 1 -attempt a -framework hf -folder x", "needs a group for the step"),
        (
            "watch -checkpoint ROOT -epoch 1 -attempt a -framework hf -settle",
            "-settle applies only to -framework marker",
        ),
        ("watch -checkpoint ROOT -epoch 1 -attempt a -framework dcp -ranks 0", "-ranks: must be at least 1: 0"),
        ("watch -checkpoint ROOT -epoch 1 -attempt a -framework marker -marker a", "-folder REGEX is required"),
        (
            "watch -checkpoint ROOT -epoch 1 -attempt a -framework marker -folder (.)",
            "-marker PATTERN[:CHECK] is required",
        ),
        ("watch -checkpoint ROOT -epoch 1 -attempt a -framework hf -interval 0s", "-interval: must be above zero"),
        ("watch -checkpoint ROOT -epoch 1 -framework hf one two", "unexpected argument"),
        ("publish -checkpoint ROOT -epoch 1", "SAVE and STEP are required"),
        ("publish -checkpoint ROOT -epoch 1 ROOT/a", "SAVE and STEP are required"),
        ("publish -checkpoint ROOT -epoch 1 ROOT/a 5 6", "unexpected argument"),
        ("publish -checkpoint ROOT -epoch 1 ROOT/a five", "STEP: not an unsigned decimal number: five"),
        ("publish -checkpoint ROOT -epoch 1 ROOT/a 18446744073709551616", "STEP: over 2^64-1"),
        ("publish -checkpoint ROOT ROOT/a 5 -epoch 1", "unexpected argument"),
        ("publish -checkpoint ROOT -epoch 1 -attempt a ROOT/a 5", "unknown flag: -attempt"),
    ],
)
def test_a_mistake_in_the_command_line_is_a_usage_error(root: Path, line: str, why: str) -> None:
    """cli.1, cli.3, cli.6, proxy.2, publish.1"""
    refused(call(*(word.replace("ROOT", str(root)) for word in line.split())), 2, why)


def test_an_empty_save_is_a_usage_error(root: Path) -> None:
    """publish.1"""
    refused(call("publish", "-checkpoint", root, "-epoch", "1", "", "5"), 2, "SAVE is empty")
    refused(call("watch", "-checkpoint", root, *NUMBERS, "-framework", "hf", ""), 2, "SAVES is empty")


def test_the_root_itself_is_not_a_save(root: Path) -> None:
    """publish.1"""
    refused(call("publish", "-checkpoint", root, "-epoch", "1", root, "5"), 1, "SAVE must be inside the root")


def test_an_empty_creds_list_counts_as_missing(root: Path) -> None:
    """creds.6"""
    refused(call("resolve", "-checkpoint", "s3://bucket/run", "-creds", ""), 2, "-creds LIST is required")
    assert call("resolve", "-checkpoint", root, "-creds", "").status == 0


def test_probe_false_is_accepted_for_a_directory(root: Path) -> None:
    """cli.1"""
    assert call("resolve", "-checkpoint", root, "-probe=false") == Result(0, b"", b"")


@pytest.mark.parametrize(
    ("root_text", "why"),
    [
        ("gs://bucket/run", "write ./ in front"),
        ("s3:/bucket", "write ./ in front"),
        ("file:/data", "write ./ in front"),
        ("S3://bucket/run", "write ./ in front"),
        ("a:b/c", "write ./ in front"),
        ("/does/not/exist", "is it mounted"),
        ("/dev/null", "is it mounted"),
        ("~/run", "publish does not expand ~"),
    ],
)
@pytest.mark.parametrize("verb", ["resolve", "prune"])
def test_an_impossible_root_fails(verb: str, root_text: str, why: str) -> None:
    """cli.6, root.3, root.4, resolve.3"""
    refused(call(verb, "-checkpoint", root_text), 1, why)


@pytest.mark.parametrize(
    ("root_text", "why"),
    [
        ("s3://", "the bucket of an S3 root is"),
        ("s3://b/run", "the bucket of an S3 root is"),
        ("s3://bucket", "an S3 root needs a prefix, s3://BUCKET/PREFIX: s3://bucket"),
        ("s3://bucket/", "an S3 root needs a prefix, s3://BUCKET/PREFIX: s3://bucket/"),
        ("s3://bucket//run", "the prefix of an S3 root has no empty, . or .. segment"),
        ("s3://bucket/a?b", "the prefix of an S3 root has no empty, . or .. segment, no ?"),
    ],
)
@pytest.mark.parametrize("verb", ["resolve", "probe"])
def test_an_impossible_s3_root_fails(verb: str, root_text: str, why: str) -> None:
    """cli.6, root.2, probe.1"""
    refused(call(verb, "-checkpoint", root_text, "-creds", "file:/x"), 1, why)


def test_another_scheme_fails_before_the_sources_are_read() -> None:
    """cli.6, probe.1"""
    refused(call("probe", "-checkpoint", "gs://bucket/run"), 1, "write ./ in front")
    refused(call("probe", "-checkpoint", "gs://bucket/run", "-creds", "nonsense"), 1, "write ./ in front")


def test_usage_comes_before_a_wrong_root() -> None:
    """cli.6"""
    refused(call("publish", "-checkpoint", "/does/not/exist", "save", "5"), 2, "no epoch given")
    refused(call("publish", "-checkpoint", "gs://b/p", "-epoch", "1", "save", "five"), 2, "STEP")


def test_a_relative_root_is_below_the_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """root.3, root.4"""
    (root / "a:b").mkdir()
    monkeypatch.chdir(root)
    assert call("resolve", "-checkpoint", ".") == Result(0, b"", b"")
    assert call("resolve", "-checkpoint", "./a:b") == Result(0, b"", b"")
    assert call("resolve", "-checkpoint", root / "a:b") == Result(0, b"", b"")


def test_a_removed_working_directory_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    refused(call("resolve", "-checkpoint", "run"), 1, "the working directory is gone")
    assert call("resolve", "-checkpoint", root).status == 0


PUBLISH = ("publish", "-checkpoint", "/does/not/exist", "save", "5")
EPOCH_NAMES = "-epoch or DISPATCH_EPOCH: "


@pytest.mark.parametrize("malformed", ["", "-1", "+1", "x", "1 ", "18446744073709551616", "0x1"])
def test_a_malformed_epoch_is_a_usage_error_that_names_both_places(malformed: str) -> None:
    """env.1"""
    refused(call(*PUBLISH, env={"DISPATCH_EPOCH": malformed}), 2, EPOCH_NAMES)
    refused(call("publish", "-epoch", malformed, *PUBLISH[1:], env={"DISPATCH_EPOCH": "7"}), 2, EPOCH_NAMES)


def test_a_missing_epoch_is_a_usage_error_that_names_both_places() -> None:
    """env.1"""
    refused(call(*PUBLISH), 2, "no epoch given: use -epoch or set DISPATCH_EPOCH")


def test_the_flag_wins_over_a_malformed_variable(root: Path) -> None:
    """env.1"""
    (root / "save").mkdir()
    line = ("publish", "-checkpoint", root, "-epoch", "007", root / "save", "005")
    result = call(*line, env={"DISPATCH_EPOCH": "x"})
    assert result.status == 0
    assert b"(epoch 7, step 5, " in result.out


@pytest.mark.parametrize("malformed", ["", ".", "..", "a/b", "/a", "a\nb", "\x7f"])
def test_a_malformed_attempt_is_a_usage_error_that_names_both_places(root: Path, malformed: str) -> None:
    """env.1"""
    line = ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "1")
    why = "-attempt or DISPATCH_ATTEMPT: not a folder name"
    refused(call(*line, env={"DISPATCH_ATTEMPT": malformed}), 2, why)
    refused(call(*line, "-attempt", malformed, env={"DISPATCH_ATTEMPT": "a"}), 2, why)


def test_a_missing_attempt_is_a_usage_error_that_names_both_places(root: Path) -> None:
    """env.1"""
    line = ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "1")
    refused(call(*line), 2, "no attempt given: use -attempt or set DISPATCH_ATTEMPT")


def test_the_userinfo_of_a_refused_url_is_not_shown(root: Path) -> None:
    """cli.9"""
    url = "http://user:canary@host"
    for line in (
        ("resolve", "-checkpoint", url),
        ("resolve", "-checkpoint", "s3://key:canary@bucket/run", "-creds", "file:/x"),
        ("resolve", "-checkpoint", "s3://bucket/run", "-creds", "file:/x", "-proxy", url),
        ("resolve", "-checkpoint", "s3://bucket/run", "-creds", f"file:/x,{url}"),
        ("resolve", "-checkpoint", "s3://bucket/run", "-creds", f"vault:{url}/p"),
        ("resolve", f"---proxy={url}"),
        ("resolve", f"-proxi={url}"),
        ("resolve", "-checkpoint", root, url),
        ("publish", "-checkpoint", root, "-epoch", "1", "s3://key:canary@bucket/run", "5"),
        (url,),
        ("help", url),
    ):
        result = call(*line)
        assert result.status in {1, 2}
        assert b"canary" not in result.err


@pytest.mark.parametrize(
    "url", ["s3://AKIA:se/cretCANARY@bucket/p", "http://user:pw CANARY@host/p", "s3://k:CANARY@/x@CANARY\n@b/p"]
)
def test_a_password_that_is_not_percent_encoded_is_not_shown(
    root: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cli.9"""
    # Where a URL would lie below the root if it were a path.
    monkeypatch.chdir(root)
    publish = ("publish", "-epoch", "1")
    s3 = ("-checkpoint", "s3://bucket/run", "-creds", "file:/x")
    for line in (
        ("resolve", "-checkpoint", url, "-creds", "file:/x"),
        (*publish, "-checkpoint", root, url, "5"),
        (*publish, "-checkpoint", root, "save", url),
        ("resolve", *s3, "-proxy", url),
        ("resolve", *s3, "-timeout", url),
        ("resolve", "-checkpoint", "s3://bucket/run", "-creds", url),
        ("resolve", f"-proxi={url}"),
        ("resolve", "-checkpoint", root, url),
        (url,),
        ("help", url),
    ):
        result = call(*line)
        assert result.status in {1, 2}
        assert b"CANARY" not in result.err


def test_an_at_sign_in_a_path_is_shown(root: Path) -> None:
    """cli.9: only what follows a scheme can be userinfo."""
    assert "/no/a@b" in call("resolve", "-checkpoint", "/no/a@b").notes[0]
    line = ("publish", "-epoch", "1", "-checkpoint", root, "/elsewhere/a@b", "5")
    assert call(*line).notes[0].endswith("/elsewhere/a@b")


def test_a_control_character_in_a_quoted_value_is_escaped() -> None:
    """cli.5"""
    result = call("resolve", "-checkpoint", "/no\n\x1b[31m\x7f\u009b\u2028t\udcff")
    assert result.err.count(b"\n") == 1
    assert rb"/no\n\x1b[31m\x7f\x9b\u2028t" in result.err
    assert b"\xff" in result.err


def test_arguments_that_are_not_utf_8_are_kept(root: Path) -> None:
    """layout.3"""
    save = os.fsencode(root) + b"/s\xe9\xff"
    os.mkdir(save)
    result = call("publish", "-checkpoint", root, "-epoch", "1", save, "5")
    assert save in result.out
    assert call("resolve", "-checkpoint", root).out == save + b"\n"
    assert save in call("publish", "-checkpoint", root, "-epoch", "1", save, "5").err

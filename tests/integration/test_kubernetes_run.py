"""The Kubernetes recipe of one container: valid by the API's own schemas, and run as the kubelet would run it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import all_versions, major_minor, validate

from tests.support.kubelet import MountedSecret
from tests.support.program import CLEAN, PROGRAM
from tests.support.s3_roots import Place, make_place
from tests.support.servers import KeyedServer

RECIPE = Path(__file__).parents[2] / "examples" / "kubernetes" / "job.yaml"
# `podReplacementPolicy` and `backoffLimitPerIndex`.
FIRST = (1, 28)


def job() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(RECIPE.read_text())
    return manifest


def container() -> dict[str, Any]:
    (only,) = job()["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


@pytest.mark.parametrize(
    "version", sorted({major_minor(one) for one in all_versions() if tuple(map(int, one.split(".")[:2])) >= FIRST})
)
def test_the_manifest_is_valid_by_the_apis_schema(version: str) -> None:
    validate(job(), version, strict=True)


def test_the_pod_holds_the_restricted_security_standard() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/, Restricted."""
    pod = job()["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "secret"}]
    assert container()["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def run_pod(name: str, place: Place, secret: Path, training: str) -> subprocess.CompletedProcess[bytes]:
    """The container's command with another training, on another root."""
    (variable,) = container()["env"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    moved = {"/var/run/secrets/ckpt-s3": str(secret), "s3://ckpts/run-7": place.url}
    words = [*container()["command"], "sh", "-c", training]
    for there, here in moved.items():
        words = [word.replace(there, here) for word in words]
    path = f"{Path(PROGRAM).parent}:{CLEAN['PATH']}"
    return subprocess.run(
        words, env={variable["name"]: name, "PATH": path}, capture_output=True, timeout=120, check=False
    )


def test_each_pod_resumes_from_the_previous_pods_save(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """run.1, run.2, begin.2: with an epoch that `publish` finds"""
    place = make_place(seaweedfs)
    secret = MountedSecret(tmp_path / "secret", {"endpoint": seaweedfs.endpoint, **seaweedfs.key._asdict()}).directory
    said = 'echo "$DISPATCH_EPOCH [$DISPATCH_RESUME] $DISPATCH_SAVES"'
    resume = ""
    for epoch in (1, 2, 3):
        name = f"run-7-0-{epoch}"
        # What the training saves is put here: the test has the store's client.
        place.fill(f"exec/{name}/step-{epoch}/__0_0.distcp")
        place.fill(f"exec/{name}/step-{epoch}/.metadata", body=b"{}")
        pod = run_pod(name, place, secret, said + "; exit 3")
        assert (pod.returncode, pod.stdout.decode()) == (3, f"{epoch} [{resume}] {place.url}/exec/{name}\n"), pod.stderr
        resume = f"{place.url}/exec/{name}/step-{epoch}"
        assert f"step {epoch}, {resume})" in pod.stderr.decode()


def test_a_pod_without_its_secret_fails_before_it_trains(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """run.3"""
    pod = run_pod("run-7-0-x", make_place(seaweedfs), tmp_path / "never-mounted", "echo training")
    assert (pod.returncode, pod.stdout) == (1, b"")

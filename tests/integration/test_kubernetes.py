"""The Kubernetes recipe with a sidecar: valid by the API's own schemas, and run as the kubelet would run it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import ValidationError
from kubernetes_validate.utils import all_versions, major_minor, validate

from tests.support.kubelet import MountedSecret, environment, expanded
from tests.support.program import CLEAN, PROGRAM, without_narration
from tests.support.s3_roots import Place, make_place
from tests.support.servers import KeyedServer, S3Server

RECIPE = Path(__file__).parents[2] / "examples" / "kubernetes" / "sidecar.yaml"
FIRST_WITH_SIDECARS = (1, 29)
COUNTED = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"

Manifest = dict[str, Any]  # what YAML gives


def manifests() -> list[Manifest]:
    return list(yaml.safe_load_all(RECIPE.read_text()))


def versions() -> list[str]:
    every = {major_minor(version) for version in all_versions()}
    return sorted(version for version in every if tuple(map(int, version.split("."))) >= FIRST_WITH_SIDECARS)


@pytest.mark.parametrize("version", versions())
def test_the_manifests_are_valid_by_the_apis_schema(version: str) -> None:
    for manifest in manifests():
        validate(manifest, version, strict=True)


def test_the_schema_rejects_invalid_manifests() -> None:
    broken = manifests()[0]
    broken["spec"]["podReplacementPolicies"] = "Failed"
    with pytest.raises(ValidationError):
        validate(broken, versions()[-1], strict=True)


def pods() -> list[Manifest]:
    """The specifications of the Job's pods and of the CronJob's."""
    job, cron_job = manifests()
    return [job["spec"]["template"]["spec"], cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]]


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@pytest.mark.parametrize("pod", pods(), ids=["job", "cron-job"])
def test_the_pods_hold_the_restricted_security_standard(pod: Manifest) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/, Restricted."""
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(set(volume) & {"secret", "emptyDir"} for volume in pod["volumes"])
    for container in containers(pod):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["name"] == "train" or security["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("pod", pods(), ids=["job", "cron-job"])
def test_a_secret_is_mounted_only_where_it_is_read(pod: Manifest) -> None:
    secrets = {volume["name"] for volume in pod["volumes"] if "secret" in volume}
    for container in containers(pod):
        mounted_here = {mount["name"] for mount in container["volumeMounts"]}
        words = " ".join([*container["command"], *container.get("args", [])])
        reads = {name for name in secrets if f"secret:/var/run/secrets/{name}" in words}
        assert mounted_here & secrets == (reads or {"train-s3"})


class Pod:
    """One pod of the Job, run as the kubelet runs it: commands, expanded variables, mounted folders."""

    def __init__(self, name: str, place: Place, secret: Path, job: Path, annotations: dict[str, str]) -> None:
        self.name = name
        self.spec = manifests()[0]["spec"]["template"]["spec"]
        self.fields = {"metadata.name": name} | {
            f"metadata.annotations['{key}']": value for key, value in annotations.items()
        }
        self.moved = {"/var/run/secrets/ckpt-s3": str(secret), "/job": str(job), "s3://ckpts/run-7": place.url}

    def start(self, container: str) -> subprocess.Popen[bytes]:
        spec = next(one for one in self.spec["initContainers"] if one["name"] == container)
        env = {name: self._moved(value) for name, value in environment(spec["env"], self.fields).items()}
        words = [expanded(self._moved(word), env) for word in [*spec["command"], *spec.get("args", [])]]
        path = f"{Path(PROGRAM).parent}:{CLEAN['PATH']}"
        return subprocess.Popen(words, env=env | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, container: str) -> str:
        with self.start(container) as process:
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said.decode()

    @contextmanager
    def training(self) -> Iterator[subprocess.Popen[bytes]]:
        """What comes before the training, the watch beside it, and what the kubelet does when it has ended."""
        self.run("probe")
        self.run("resolve")
        with self.start("watch") as watch:
            try:
                yield watch
                watch.terminate()
                watch.wait(60)
                assert watch.returncode == 0
            finally:
                watch.kill()

    def _moved(self, word: str) -> str:
        for there, here in self.moved.items():
            word = word.replace(there, here)
        return word


def mounted(folder: Path, server: S3Server) -> Path:
    return MountedSecret(folder, {"endpoint": server.endpoint, **server.key._asdict()}).directory


@pytest.mark.exhaustive
def test_each_pod_resumes_from_the_previous_pods_save_with_a_higher_epoch(
    seaweedfs: KeyedServer, tmp_path: Path
) -> None:
    place = make_place(seaweedfs)
    secret = mounted(tmp_path / "secret", seaweedfs)
    epochs = []
    resume = ""
    # The first pod, one after a failure, one after a pre-emption, one after another failure.
    counts: list[dict[str, str]] = [
        {COUNTED: "0"},
        {COUNTED: "1"},
        {COUNTED: "1", IGNORED: "1"},
        {COUNTED: "2", IGNORED: "1"},
    ]
    for step, counted in enumerate(counts, 1):
        job = tmp_path / f"job-{step}"
        job.mkdir()
        pod = Pod(f"run-7-0-{step}", place, secret, job, counted)
        with pod.training() as watch:
            assert (job / "resume").read_text().rstrip("\n") == resume
            place.fill(f"exec/{pod.name}/step-{step}/.metadata")
            assert watch.stdout is not None
            said = next(line for line in watch.stdout if without_narration(line)).decode()
            # A save that the pod's end cut short.
            place.fill(f"exec/{pod.name}/step-{step + 1}/.metadata.tmp")
        resume = f"{place.url}/exec/{pod.name}/step-{step}"
        published = re.fullmatch(rf"published \S+ \(epoch ([0-9]+), step {step}, {re.escape(resume)}\)\n", said)
        assert published, said
        epochs.append(int(published[1]))
    assert epochs == [1_000_000, 1_000_001, 1_000_002, 1_000_003]


def test_a_pod_that_cannot_reach_the_store_fails_before_it_trains(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    place = make_place(seaweedfs)
    pod = Pod("run-7-0-x", place, tmp_path / "never-mounted", tmp_path, {COUNTED: "0"})
    with pod.start("resolve") as process:
        process.communicate(timeout=60)
    assert process.returncode == 1
    assert (tmp_path / "resume").read_text() == ""

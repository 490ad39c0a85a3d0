"""The Kubernetes recipes that use `run`: valid by the API's own schemas, and run as the kubelet would run them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import all_versions, major_minor, validate

from tests.support.kubelet import MountedSecret, environment, expanded
from tests.support.program import CLEAN, PROGRAM
from tests.support.s3_roots import Place, make_place
from tests.support.servers import KeyedServer, S3Server

RECIPES = Path(__file__).parents[2] / "examples" / "kubernetes"
# `podReplacementPolicy`.
FIRST = (1, 28)
VERSIONS = sorted({major_minor(one) for one in all_versions() if tuple(map(int, one.split(".")[:2])) >= FIRST})

Manifest = dict[str, Any]  # what YAML gives


def recipe(name: str) -> Manifest:
    manifest: Manifest = yaml.safe_load((RECIPES / name).read_text())
    return manifest


def job_of_one_pod() -> Manifest:
    return recipe("job.yaml")


def job_of_the_jobset() -> Manifest:
    """The Job that the JobSet controller makes of its template; the JobSet itself has fields of its own."""
    jobset = recipe("jobset.yaml")
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert jobset["spec"].keys() == {"failurePolicy", "replicatedJobs"}
    (replicated,) = jobset["spec"]["replicatedJobs"]
    assert replicated.keys() == {"name", "template"}
    name = f"{jobset['metadata']['name']}-{replicated['name']}-0"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, **replicated["template"]}


JOBS = [job_of_one_pod(), job_of_the_jobset()]
EACH_JOB = pytest.mark.parametrize("job", JOBS, ids=["job", "jobset"])


def container(job: Manifest) -> Manifest:
    (only,) = job["spec"]["template"]["spec"]["containers"]
    found: Manifest = only
    return found


@EACH_JOB
@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifest_is_valid_by_the_apis_schema(version: str, job: Manifest) -> None:
    validate(job, version, strict=True)


@EACH_JOB
def test_the_pods_hold_the_restricted_security_standard(job: Manifest) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/, Restricted."""
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "secret"}]
    assert container(job)["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@EACH_JOB
def test_no_container_is_started_again_in_its_pod(job: Manifest) -> None:
    """begin.1: it would be a second start under the name of the first"""
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


class Pod:
    """A pod of a recipe, with another training and on another root."""

    def __init__(self, job: Manifest, fields: dict[str, str], place: Place, secret: Path) -> None:
        self._spec = container(job)
        self._fields = fields
        self._moved = {"/var/run/secrets/ckpt-s3": str(secret), "s3://ckpts/run-7": place.url}

    def start(self, training: str) -> subprocess.Popen[bytes]:
        env = environment(self._spec["env"], self._fields)
        words = [*self._spec["command"], *self._spec["args"]]
        words = [expanded(word, env) for word in [*words[: words.index("--") + 1], "sh", "-c", training]]
        for there, here in self._moved.items():
            words = [word.replace(there, here) for word in words]
        path = f"{Path(PROGRAM).parent}:{CLEAN['PATH']}"
        return subprocess.Popen(words, env=env | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, training: str) -> tuple[int, str, str]:
        """Its exit status, stdout and stderr."""
        with self.start(training) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out.decode(), err.decode()


def mounted(folder: Path, server: S3Server) -> Path:
    return MountedSecret(folder, {"endpoint": server.endpoint, **server.key._asdict()}).directory


SAYS = 'echo "$DISPATCH_EPOCH [$DISPATCH_RESUME] $DISPATCH_SAVES"'


def test_each_pod_resumes_from_the_previous_pods_save(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """run.1, run.2, begin.2: with an epoch that `publish` finds"""
    place = make_place(seaweedfs)
    secret = mounted(tmp_path / "secret", seaweedfs)
    resume = ""
    for epoch in (1, 2, 3):
        name = f"run-7-{epoch}"
        # What the training saves is put here: the test has the store's client.
        place.fill(f"exec/{name}/step-{epoch}/__0_0.distcp")
        place.fill(f"exec/{name}/step-{epoch}/.metadata", body=b"{}")
        status, out, err = Pod(job_of_one_pod(), {"metadata.name": name}, place, secret).run(SAYS + "; exit 3")
        assert (status, out) == (3, f"{epoch} [{resume}] {place.url}/exec/{name}\n"), err
        resume = f"{place.url}/exec/{name}/step-{epoch}"
        assert f"step {epoch}, {resume})" in err


def test_a_pod_without_its_secret_fails_before_it_trains(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """run.3"""
    pod = Pod(job_of_one_pod(), {"metadata.name": "run-7-x"}, make_place(seaweedfs), tmp_path / "never-mounted")
    status, out, _ = pod.run("echo training")
    assert (status, out) == (1, "")


def fields_of_a_jobsets_pod(node: int, restarts: int) -> dict[str, str]:
    """What the JobSet controller and the Job controller write into a pod."""
    return {
        "metadata.labels['jobset.sigs.k8s.io/jobset-uid']": "6f1c",
        "metadata.labels['jobset.sigs.k8s.io/restart-attempt']": str(restarts),
        "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(node),
    }


def test_the_pods_of_a_jobset_get_one_answer_and_another_one_after_a_restart(
    seaweedfs: KeyedServer, tmp_path: Path
) -> None:
    """run.6, begin.1: the first pod publishes"""
    place = make_place(seaweedfs)
    secret = mounted(tmp_path / "secret", seaweedfs)
    resume = ""
    for restarts in (0, 1):
        saves = f"exec/6f1c-{restarts}"
        place.fill(f"{saves}/step-{restarts + 1}/__0_0.distcp")
        place.fill(f"{saves}/step-{restarts + 1}/.metadata", body=b"{}")
        pods = [
            Pod(job_of_the_jobset(), fields_of_a_jobsets_pod(node, restarts), place, secret).start(SAYS)
            for node in (1, 0)
        ]
        ended = [pod.communicate(timeout=120) for pod in pods]
        assert [pod.returncode for pod in pods] == [0, 0], ended
        answers = {out.decode() for out, _ in ended}
        (answer,) = answers
        assert answer.partition(" ")[2] == f"[{resume}] {place.url}/{saves}\n"
        resume = f"{place.url}/{saves}/step-{restarts + 1}"
        assert [b"published " in err for _, err in ended] == [False, True]


def test_the_jobsets_torchrun_has_the_number_of_its_node_and_the_name_of_the_first() -> None:
    job = job_of_the_jobset()
    spec = container(job)
    words = [expanded(word, environment(spec["env"], fields_of_a_jobsets_pod(2, 0))) for word in spec["args"]]
    assert "-node=2" in words[: words.index("--")]
    command = words[words.index("--") + 1 :]
    assert command[:3] == ["torchrun", f"--nnodes={job['spec']['completions']}", "--node-rank=2"]
    # The JobSet's headless service is called as the JobSet is, and a pod after its Job and its index.
    assert f"--master-addr={job['metadata']['name']}-0.run-7" in command

"""The table of frameworks. A new one is one more row here; help, errors, pages and prune follow it.

`docs/frameworks.md` says for each row why it never takes a save too early.
"""

from __future__ import annotations

from publish.domain.layout import ITSELF, Check, Framework, Layout, Need, Tracker
from publish.domain.root import Where

_STEP = rb"([0-9]+)"
_MEGATRON = rb"iter_([0-9]{7,})"
_LATEST_ITERATION = Tracker(b"latest_checkpointed_iteration.txt")
_LIGHTNING = rb"(?:.*[-_])?step=" + _STEP + rb"(?:-v[0-9]+)?\.ckpt"
_LIGHTNING_FORMS = ("step=N.ckpt", "epoch=E-step=N.ckpt", "NAME-step=N.ckpt", "step=N-vE.ckpt")
_ORBAX = rb"(?:.+_)?" + _STEP
_ORBAX_FORBIDS = (b"*.orbax-checkpoint-tmp*", b"../{}.orbax-checkpoint-tmp*")
_ORBAX_MARKER = Need(b"_CHECKPOINT_METADATA", Check.JSON, set_key="commit_timestamp_nsecs")
_OLMO_NEEDS = (
    Need(b".metadata.json", Check.JSON, unset_key="ephemeral"),
    Need(b"train/rank0.pt", Check.ZIP),
    Need(b"model_and_optim/.metadata", Check.DCP),
)


def _verl(*needs: Need, settle: bool = False) -> Layout:
    return Layout(("global_step_N",), rb"global_step_" + _STEP, needs, tracker=_LATEST_ITERATION, settle=settle)


_HF = Framework(
    "hf",
    (
        Layout(
            ("checkpoint-N",),
            rb"checkpoint-" + _STEP,
            (Need(b"trainer_state.json", Check.JSON, step_key="global_step"),),
            # Transformers 5 keeps this in a save that pre-emption began, until the save is whole.
            forbids=(b"checkpoint-is-incomplete.txt",),
        ),
    ),
    "Hugging Face Trainer (also TRL, Axolotl, Unsloth, ms-swift SFT)",
)
_LLAMAFACTORY = Framework(
    "llamafactory",
    (
        Layout(
            ("checkpoint-N",),
            rb"checkpoint-" + _STEP,
            (
                Need(b"CHECKPOINT_COMPLETE", Check.ANY),
                Need(b"metadata.json", Check.JSON, step_key="global_step"),
                Need(b"dataloader/rank_*.pt", Check.ZIP),
            ),
            # Rank 0 waits for its accelerator before the marker, and not for the other ranks' small files.
            settle=True,
        ),
    ),
    "LLaMA-Factory v1",
)
_DCP = Framework(
    "dcp",
    (
        Layout(
            (
                "N",
                "step-N",
                "step_N",
                "stepN",
                "global_step_N",
                "checkpoint_N",
                "ckpt-N",
                "iteration=N",
                "epE-baN",
                "epoch=E-step=N",
            ),
            # Megatron's own names are left to its own row: its .metadata is not its last file.
            rb"(?!iter_[0-9]{7})"
            rb"(?:(?:(?:step|global_step|checkpoint|ckpt|iter|iteration)[-_=]?|ep[0-9]+-ba)?([0-9]+)"
            rb"|(?:epoch=[0-9]+-)?step=([0-9]+))",
            (Need(b".metadata", Check.FULL),),
            forbids=(b"metadata.json", b"common.pt", b"modelopt_state"),
        ),
        Layout(
            ("step=N.ckpt", "epoch=E-step=N.ckpt"),
            rb"(?:epoch=[0-9]+-)?step=" + _STEP + rb"\.ckpt",
            (Need(b".metadata", Check.FULL), Need(b"meta.pt", Check.ZIP)),
        ),
        Layout(
            ("step-N",),
            rb"step-" + _STEP,
            (Need(b"model.safetensors.index.json", Check.INDEX),),
            forbids=(b".metadata",),
            settle=True,
        ),
    ),
    "torch.distributed.checkpoint (torchtitan, torchforge, Composer, your own loop)",
)
_MEGATRON_LM = Framework(
    "megatron",
    (
        Layout(
            ("iter_000000N",),
            _MEGATRON,
            (
                Need(b"metadata.json", Check.JSON, set_key="sharded_backend"),
                Need(b".metadata", Check.DCP),
            ),
            tracker=_LATEST_ITERATION,
        ),
        Layout(
            ("iter_000000N",),
            _MEGATRON,
            (Need(b".metadata", Check.DCP),),
            # With one of these a torch_dist save is under way, which ends with metadata.json.
            forbids=(b"metadata.json", b"common.pt", b"modelopt_state"),
            tracker=_LATEST_ITERATION._replace(exact=True),
        ),
    ),
    "Megatron-LM and Megatron-Core (torch_dist, fsdp_dtensor, torch_dcp; also slime)",
)
_VERL_ROWS = Framework(
    "verl",
    (
        _verl(
            Need(b"data.pt", Check.ZIP),
            Need(b"actor/model_world_size_*_rank_*.pt", Check.RANKS),
            Need(b"*/*_world_size_*_rank_*.pt", Check.RANKS),
        ),
        _verl(
            Need(b"data.pt", Check.ZIP),
            Need(b"actor/ckpt_contents.json", Check.JSON),
            Need(b"*/ckpt_contents.json", Check.JSON, each_folder=True),
        ),
        _verl(
            Need(b"data_0.pt", Check.ZIP),
            Need(b"data_*.pt", Check.ZIP),
            Need(b"model_world_size_*_rank_*.pt", Check.RANKS),
            Need(b"*_world_size_*_rank_*.pt", Check.RANKS),
            settle=True,
        ),
    ),
    "veRL (PPO and GRPO with FSDP or Megatron, SFT)",
)
_LIGHTNING_ROWS = Framework(
    "lightning",
    (
        Layout(_LIGHTNING_FORMS, _LIGHTNING, (Need(ITSELF, Check.ZIP),)),
        Layout(
            _LIGHTNING_FORMS,
            _LIGHTNING,
            (Need(b"meta.pt", Check.ZIP), Need(b".metadata", Check.DCP)),
        ),
    ),
    "PyTorch Lightning (single files, FSDP and ModelParallel)",
)
_OLMO = Framework(
    "olmo",
    (
        Layout(("stepN",), rb"step" + _STEP, _OLMO_NEEDS, where=Where.DIRECTORY),
        # A synchronous save to a URL uploads each rank's train state without a barrier before the marker.
        Layout(("stepN",), rb"step" + _STEP, _OLMO_NEEDS, settle=True, where=Where.OBJECT_STORE),
    ),
    "OLMo-core",
)
_LEVANTER = Framework(
    "levanter",
    (
        Layout(
            ("step-N",),
            rb"step-" + _STEP,
            (Need(b"metadata.json", Check.JSON, step_key="step", unset_key="is_temporary"),),
        ),
    ),
    "Levanter",
)
_ORBAX_ROWS = Framework(
    "orbax",
    (
        Layout(("N", "NAME_N"), _ORBAX, (_ORBAX_MARKER,), forbids=_ORBAX_FORBIDS, where=Where.DIRECTORY),
        Layout(
            ("N", "NAME_N"),
            _ORBAX,
            (_ORBAX_MARKER, Need(b"commit_success.txt", Check.FULL)),
            forbids=_ORBAX_FORBIDS,
            where=Where.OBJECT_STORE,
        ),
    ),
    "Orbax (also MaxText)",
)
_SKYRL = Framework(
    "skyrl",
    (
        Layout(
            ("global_step_N",),
            rb"global_step_" + _STEP,
            (Need(b"trainer_state.pt", Check.ZIP), Need(b"policy/*_world_size_*_rank_*.pt", Check.RANKS)),
            tracker=Tracker(b"latest_ckpt_global_step.txt"),
        ),
    ),
    "SkyRL",
)
_OPENRLHF = Framework(
    "openrlhf",
    (
        Layout(
            ("global_stepN",),
            rb"global_step" + _STEP,
            (Need(b"metric.json", Check.JSON), Need(b"*_states.pt", Check.RANKS)),
        ),
    ),
    "OpenRLHF",
)
_AUTOMODEL = Framework(
    "automodel",
    (
        Layout(
            ("epoch_E_step_N",),
            rb"epoch_[0-9]+_step_" + _STEP,
            (Need(b"config.yaml", Check.FULL),),
            forbids=(b".incomplete",),
            where=Where.DIRECTORY,
        ),
    ),
    "NeMo Automodel",
)
_NEMO_RL = Framework(
    "nemo-rl",
    (Layout(("step_N",), rb"step_" + _STEP, (Need(b"training_info.json", Check.JSON),), where=Where.DIRECTORY),),
    "NeMo RL",
)

FRAMEWORKS = {
    framework.name: framework
    for framework in (
        _HF, _LLAMAFACTORY, _DCP, _MEGATRON_LM, _VERL_ROWS, _LIGHTNING_ROWS, _OLMO, _LEVANTER, _ORBAX_ROWS, _SKYRL,
        _OPENRLHF, _AUTOMODEL, _NEMO_RL,
    )
}  # fmt: skip


MARKERS = tuple(
    dict.fromkeys(
        marker for framework in FRAMEWORKS.values() for layout in framework.layouts for marker in layout.markers
    )
)
"""The files directly in a save that say it is complete: the first to go when it is removed (prune.6)."""

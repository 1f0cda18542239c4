"""The catalogue of causes: complete, well formed, acyclic, and filled with a run's own values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from traindx.causes import Cause, all_causes, cause_named, consequences_of, families
from traindx.errors import UnknownName
from traindx.examples import make_run, recorded, watched, weights
from traindx.model.findings import Remedy
from traindx.model.run import Architecture, Event, Failure, Run, Tensor

# the contract: names that stand in JSON, reports and users' scripts; add, never rename or remove
CONTRACT = {
    "numerics": """
        nan-in-data unstable-operation fp16-overflow loss-scale-collapse fully-masked-attention
        exploding-activations
    """,
    "optimisation": """
        lr-too-high lr-too-low lr-zero lr-schedule-misuse missing-warmup
        missing-gradient-clipping gradient-clipping-too-tight vanishing-gradients
        missing-optimizer-step missing-zero-grad missing-backward gradients-cleared-before-step
        gradient-accumulation-unscaled clip-after-step parameters-not-in-optimizer
        frozen-parameters detached-loss weight-decay-too-high batch-too-small bad-initialisation
        dead-relu saturated-activations softmax-before-cross-entropy loss-expects-probabilities
        wrong-loss-for-task target-shape-broadcast insufficient-capacity
        data-distribution-change outlier-batch config-not-applied competing-losses
        resume-without-optimizer-state
    """,
    "generalisation": """
        overfitting data-leakage evaluating-on-training-data training-in-eval-mode
        validation-in-train-mode batchnorm-small-batch empty-validation preprocessing-mismatch
        metric-bug distribution-shift class-imbalance label-noise catastrophic-forgetting
        seed-variance
    """,
    "collapse": """
        class-collapse constant-prediction repetition-collapse generator-mode-collapse
        posterior-collapse representation-collapse expert-collapse policy-entropy-collapse
        halting-collapse
    """,
    "architecture": """
        embedding-dominated-model parameter-imbalance unregistered-submodules missing-super-init
        missing-nonlinearity too-deep-without-skip unused-parameters shape-mismatch
        channel-mismatch output-size-mismatch vocabulary-mismatch
    """,
    "autograd": """
        in-place-modification graph-freed graph-retained-across-steps no-grad-training
        incorrect-custom-backward non-differentiable-operation
    """,
    "tensors": """
        device-mismatch dtype-mismatch index-out-of-range label-out-of-range non-contiguous-view
        api-misuse name-shadowed
    """,
    "memory": """
        activation-memory graph-kept-alive evaluation-with-grad memory-fragmentation
        optimizer-state-memory device-shared host-memory-growth shared-memory-exhausted
    """,
    "performance": """
        data-loading-bound host-bound synchronisation-in-loop underutilised-batch recompilation
        graph-breaks communication-bound straggler-rank precision-unused checkpoint-overhead
    """,
    "distributed": """
        ddp-unused-parameters collective-mismatch rank-failed-first uneven-inputs
        missing-distributed-sampler sampler-epoch-not-set rank-desync rendezvous-failure
    """,
    "mixed precision": """
        clip-without-unscale missing-scaler-update scaler-bypassed half-precision-weights
        deprecated-amp-api
    """,
    "checkpoints": """
        state-dict-key-mismatch state-dict-shape-mismatch incomplete-checkpoint
        corrupt-checkpoint unsafe-checkpoint unseeded-randomness nondeterministic-operation
        worker-seed-duplication
    """,
    "data": """
        unnormalised-inputs unnormalised-targets degenerate-batch unshuffled-training-data
        padding-in-loss augmentation-in-validation misaligned-labels worker-crash
    """,
    "environment": """
        killed-by-host disk-full version-mismatch
    """,
}

SPECIALISTS = {
    "debugging-techniques",
    "tensor-operations-and-memory",
    "distributed-training-strategies",
    "performance-profiling",
    "mixed-precision-and-optimization",
    "checkpointing-and-reproducibility",
    "module-design-patterns",
    "custom-autograd-functions",
    "data-pipeline-validation",
}

# changes that make a symptom invisible and leave its cause in place
MASKING = re.compile(
    r"nan_to_num|clamp|\btry\b.*\bexcept|except:|strict=False|retain_graph=True|"
    r"ignore_mismatched_sizes|filterwarnings|skip (?:the|bad) batch|weights_only=False",
    re.IGNORECASE,
)


def failed(message: str, kind: str = "RuntimeError", rank: int | None = None) -> Run:
    return make_run(failures=[Failure(kind, message, "train.log", rank=rank)])


CONFIGURED = make_run(
    {
        "loss/train": [2.0 - i / 500 for i in range(500)],
        "loss/val": [2.0, 1.5, 1.2, 1.4, 1.9],
        "grad_norm": [0.6] * 50,
        "lr": [1e-2] * 500,
    },
    config={
        "optim.muon_lr": "1e-2",
        "optim.adam_lr": 0.001,
        "optim.weight_decay": 0.5,
        "batch_size": 2,
        "max_grad_norm": 0.01,
        "num_classes": 10,
        "trainer.fp16": True,
        "dropout": 0.0,
        "num_workers": 8,
        "gradient_accumulation_steps": 4,
        "save_steps": 10,
        "seed": 7,
        "max_steps": 10_000,
        "vocab_size": 32_000,
    },
    architecture=Architecture(
        (Tensor("model.embed.weight", (790, 100)), Tensor("model.layers.0.weight", (210, 100))),
        "model.pt",
    ),
)


EVERY_CAUSE = list(all_causes().values())


def texts(remedy: Remedy) -> tuple[str, str, str, str]:
    return remedy.change, remedy.expected_effect, remedy.verify, remedy.if_it_fails


def fix(name: str, run: Run, which: int = 0) -> str:
    return cause_named(name).remedies_for(run)[which].change


@pytest.mark.parametrize("family", CONTRACT)
def test_every_name_of_the_contract_exists_in_its_family(family: str) -> None:
    present = {f.name: {c.name for c in f.causes} for f in families()}
    assert set(CONTRACT[family].split()) <= present[family]


def test_a_name_belongs_to_one_cause() -> None:
    names = [c.name for f in families() for c in f.causes]
    assert sorted(set(names)) == sorted(names)


def test_an_unknown_name_says_what_to_try() -> None:
    with pytest.raises(UnknownName, match="traindx explain --list"):
        cause_named("lr-too-loud")


@pytest.mark.parametrize("cause", EVERY_CAUSE, ids=lambda c: c.name)
class TestCause:
    def test_says_everything(self, cause: Cause) -> None:
        assert cause.name == cause.name.lower()
        assert len(cause.what.split()) >= 25
        assert len(re.findall(r"[.?](?:\s|$)", cause.what)) >= 2
        assert cause.confirm_in(Run()).strip()
        assert cause.specialist in SPECIALISTS
        assert 1 <= len(cause.remedies) <= 3
        for remedy in cause.remedies:
            assert all(text.strip() for text in texts(remedy))

    def test_title_is_a_sentence_without_its_period(self, cause: Cause) -> None:
        title = cause.issue_in(Run())
        assert title == title.strip()
        assert title[0].isupper() or not title[0].isalpha() or title.startswith(("torch", "view"))
        assert title[-1] not in ".:,;"
        assert len(title.split()) >= 3

    def test_texts_end_without_a_period(self, cause: Cause) -> None:
        told = [
            *(a.how for a in cause.confirm_by),
            *(t for r in cause.remedies_for(Run()) for t in texts(r)),
        ]
        assert not [text for text in told if text.endswith((".", " ", ";"))]

    @pytest.mark.parametrize("run", [Run(), CONFIGURED], ids=["nothing known", "configured"])
    def test_braces_are_filled(self, cause: Cause, run: Run) -> None:
        plain = re.compile(r"\{\w+\}")
        told = [cause.issue_in(run), *(t for r in cause.remedies_for(run) for t in texts(r))]
        assert not [text for text in told if plain.search(text)]

    def test_no_remedy_hides_a_symptom(self, cause: Cause) -> None:
        told = [text for r in cause.remedies_for(Run()) for text in texts(r)]
        assert not [text for text in told if MASKING.search(text)]

    def test_consequences_exist_and_are_others(self, cause: Cause) -> None:
        assert set(cause.brings_about) <= set(all_causes()) - {cause.name}
        assert len(set(cause.brings_about)) == len(cause.brings_about)


def test_nobody_is_asked_for_what_was_read() -> None:
    asked = cause_named("missing-zero-grad")
    nothing, code = Run(), make_run(sources={"train.py": "import torch"})
    assert asked.confirm_in(nothing).startswith("send the training loop, or log the gradient norm")
    assert asked.confirm_in(code) == "log the gradient norm over the first hundred steps"
    both = make_run({"grad_norm": [1.0, 2.0]}, sources={"train.py": "import torch"})
    assert asked.confirm_in(both) == ""


def test_no_cause_follows_from_itself() -> None:
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path, name))
        if name not in done:
            for effect in cause_named(name).brings_about:
                walk(effect, (*path, name))
            done.add(name)

    for name in all_causes():
        walk(name, ())


def test_consequences_reach_through_one_another() -> None:
    assert "fp16-overflow" in consequences_of("config-not-applied")
    assert "lr-too-high" not in consequences_of("lr-too-high")
    assert consequences_of("loss-scale-collapse") == frozenset()


@pytest.mark.parametrize(
    ("root", "effect"),
    [
        ("lr-too-high", "exploding-activations"),
        ("lr-too-high", "loss-scale-collapse"),
        ("lr-too-high", "dead-relu"),
        ("missing-zero-grad", "lr-too-high"),
        ("missing-optimizer-step", "class-collapse"),
        ("class-imbalance", "class-collapse"),
        ("rank-failed-first", "collective-mismatch"),
        ("index-out-of-range", "rank-failed-first"),
        ("vocabulary-mismatch", "index-out-of-range"),
        ("output-size-mismatch", "label-out-of-range"),
        ("host-memory-growth", "killed-by-host"),
        ("disk-full", "corrupt-checkpoint"),
        ("graph-retained-across-steps", "graph-kept-alive"),
        ("clip-without-unscale", "gradient-clipping-too-tight"),
        ("unregistered-submodules", "parameters-not-in-optimizer"),
        ("unshuffled-training-data", "catastrophic-forgetting"),
    ],
)
def test_the_root_brings_about_its_effect(root: str, effect: str) -> None:
    assert effect in cause_named(root).brings_about
    assert root not in consequences_of(effect)


class TestOwnValues:
    """A fix names the user's own keys and values."""

    @pytest.mark.parametrize(
        ("name", "which", "expected"),
        [
            ("lr-too-high", 0, "Reduce optim.muon_lr from 1e-2 to 0.005"),
            ("lr-too-low", 0, "Raise optim.muon_lr from 1e-2 to 0.1"),
            ("weight-decay-too-high", 0, "Reduce optim.weight_decay from 0.5 to 0.05"),
            ("activation-memory", 0, "Reduce batch_size from 2 to 1"),
            ("gradient-clipping-too-tight", 0, "max_grad_norm from 0.01 to 0.1"),
            ("missing-gradient-clipping", 0, "max_norm=1)"),
            ("overfitting", 0, "Keep the checkpoint of step 2 (validation loss 1.2)"),
            ("fp16-overflow", 0, "Set trainer.bf16 in place of trainer.fp16"),
            ("gradient-accumulation-unscaled", 0, "(loss / 4).backward()"),
            ("missing-warmup", 0, "the first 300 steps"),
            ("wrong-loss-for-task", 0, "with 10 outputs"),
            ("unseeded-randomness", 0, "torch.manual_seed(7)"),
            ("lr-zero", 0, "10000 steps"),
            ("host-memory-growth", 1, "num_workers from 8 to 4"),
        ],
    )
    def test_in_the_fix(self, name: str, which: int, expected: str) -> None:
        assert expected in fix(name, CONFIGURED, which)

    def test_in_the_title(self) -> None:
        title = cause_named("embedding-dominated-model").issue_in(CONFIGURED)
        assert title == "The embeddings hold 79 % of the parameters"

    def test_the_logged_rate_counts_where_it_is_higher_than_the_configured_one(self) -> None:
        run = make_run({"lr": [0.1, 0.1]}, config={"lr": 0.001})
        assert fix("lr-too-high", run) == "Reduce the peak learning rate from 0.1 to 0.05"
        assert "peaks at 0.1" in cause_named("config-not-applied").issue_in(run)

    def test_a_rate_whose_steps_are_huge_is_cut_by_more_than_half(self) -> None:
        process = watched(*weights("0.weight", "2.weight"), count=6)
        huge = tuple(replace(s, update_ratios=(0.4, 2.0)) for s in process.samples)
        run = recorded(replace(process, samples=huge), lr=np.full(6, 0.5))
        fix = cause_named("lr-too-high").remedies_for(run)[0].change
        assert "from 0.5 to 0.005" in fix

    def test_a_rate_in_warmup_is_not_the_configured_one(self) -> None:
        run = make_run({"lr": [1e-6, 2e-6]}, config={"lr": 0.001})
        assert fix("lr-too-high", run) == "Reduce lr from 0.001 to 0.0005"

    @pytest.mark.parametrize(
        "text",
        [
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
            'parser.add_argument("--lr", type=float, default=0.1)',
        ],
    )
    def test_the_rate_in_the_source_is_named(self, text: str) -> None:
        run = make_run(sources={"train.py": text})
        assert fix("lr-too-high", run) == "Reduce lr from 0.1 to 0.05"

    def test_a_batch_of_one_is_not_halved(self) -> None:
        run = make_run(config={"batch_size": 1})
        assert "length or resolution" in fix("activation-memory", run)

    def test_two_rates_in_the_source_name_none(self) -> None:
        run = make_run(sources={"train.py": "a = SGD(p, lr=0.1)\nb = SGD(q, lr=0.01)"})
        assert fix("lr-too-high", run) == "Reduce the learning rate by half"

    @pytest.mark.parametrize("key", ["fp16", "train.fp16", "use_fp16", "fp16.enabled", "FP16"])
    def test_a_flag_for_half_precision_gets_its_counterpart(self, key: str) -> None:
        other = key.lower().replace("fp16", "bf16")
        assert f"Set {other} in place of {key}" in fix(
            "fp16-overflow", make_run(config={key: True})
        )

    @pytest.mark.parametrize("value", ["16-mixed", "fp16", "float16", 16])
    def test_half_precision_is_known_under_other_names(self, value: object) -> None:
        run = make_run(config={"trainer.precision": value})
        assert f"Change trainer.precision from {value} to bf" in fix("fp16-overflow", run)

    @pytest.mark.parametrize("setting", [{"fp16": False}, {"precision": 32}, {"dtype": "bf16"}])
    def test_other_precisions_are_left_alone(self, setting: dict[str, object]) -> None:
        assert "Change" not in fix("fp16-overflow", make_run(config=setting))


class TestErrorMessages:
    """The sizes and names in an error message go into the sentence."""

    @pytest.mark.parametrize(
        ("name", "message", "issue"),
        [
            (
                "shape-mismatch",
                "mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)",
                "takes 64 features and receives 57600",
            ),
            (
                "shape-mismatch",
                "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
                "dimension 1",
                "3 and 4 meet in dimension 1",
            ),
            ("shape-mismatch", "shape '[5]' is invalid for input of size 6", "[5] cannot hold 6"),
            (
                "channel-mismatch",
                "Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 32, 32] to "
                "have 3 channels, but got 1 channels instead",
                "built for 3 and gets 1",
            ),
            (
                "channel-mismatch",
                "running_mean should contain 32 elements not 64",
                "built for 64 and gets 32",
            ),
            (
                "device-mismatch",
                "Expected all tensors to be on the same device, but found at least two devices, "
                "cuda:0 and cpu!",
                ": cuda:0 and cpu",
            ),
            (
                "dtype-mismatch",
                "mat1 and mat2 must have the same dtype, but got Double and Float",
                ": Double and Float",
            ),
            (
                "dtype-mismatch",
                "expected scalar type Long but found Float",
                ": Float where Long is wanted",
            ),
            (
                "index-out-of-range",
                "index 10000 is out of bounds for dimension 0 with size 10000",
                ": 10000 in a table of 10000",
            ),
            ("label-out-of-range", "Target 10 is out of bounds.", ": 10"),
            (
                "in-place-modification",
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: [torch.FloatTensor [256, 128]], which is output 0 of "
                "ReluBackward0, is at version 2; expected version 1 instead.",
                "the output of Relu, of shape [256, 128]",
            ),
            (
                "unstable-operation",
                "Function 'SqrtBackward0' returned nan values in its 0th output.",
                ": Sqrt",
            ),
            (
                "activation-memory",
                "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of",
                "a request for 2.50 GiB failed",
            ),
            (
                "state-dict-key-mismatch",
                'Missing key(s) in state_dict: "weight". \n\tUnexpected key(s) in state_dict: '
                '"module.weight". ',
                "module.weight is not the model's",
            ),
            (
                "state-dict-shape-mismatch",
                "size mismatch for fc.weight: copying a param with shape torch.Size([10, 512]) "
                "from checkpoint, the shape in current model is torch.Size([100, 512]).",
                "fc.weight is [10, 512] in the file and [100, 512] in the model",
            ),
            (
                "worker-crash",
                "DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible",
                "signal: Bus error",
            ),
            ("api-misuse", "forward() missing 1 required positional argument: 'x'", "argument"),
        ],
    )
    def test_are_quoted(self, name: str, message: str, issue: str) -> None:
        assert issue in cause_named(name).issue_in(failed(message))

    def test_the_layer_to_change_is_named(self) -> None:
        run = failed("mat1 and mat2 shapes cannot be multiplied (4x57600 and 64x128)")
        expected = "Change `nn.Linear(64, 128)` to `nn.Linear(57600, 128)`"
        assert fix("shape-mismatch", run) == expected

    def test_the_rank_that_failed_first_is_not_one_that_waited(self) -> None:
        waited = Failure("DistBackendError", "Watchdog caught timeout", "log", rank=0)
        first = Failure("torch.OutOfMemoryError", "CUDA out of memory", "log", rank=3)
        run = make_run(failures=[waited, first])
        title = cause_named("rank-failed-first").issue_in(run)
        assert "(rank 3, OutOfMemoryError)" in title

    def test_a_message_in_the_log_counts_too(self) -> None:
        run = make_run(events=[Event("warning", "Function 'LogBackward0' returned nan", "log")])
        assert cause_named("unstable-operation").issue_in(run).endswith(": Log")

    def test_braces_in_a_message_do_no_harm(self) -> None:
        run = failed("unexpected {key} in {0}", "KeyError")
        assert cause_named("api-misuse").issue_in(run).endswith("KeyError: unexpected {key} in {0}")

    def test_a_long_message_is_shortened(self) -> None:
        assert len(cause_named("api-misuse").issue_in(failed("x" * 1000))) < 250

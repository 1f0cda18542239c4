"""Causes in saving, restoring and repeating a run."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import CHECKPOINTS, DATA, Ask, Cause
from traindx.model.findings import Remedy, Severity

REPEATABILITY = ("differ", "determin", "nondetermin", "random", "repeat", "reproduc", "seed", "var")

CAUSES = (
    Cause(
        name="state-dict-key-mismatch",
        title="The checkpoint's keys do not match the model's{keys_fact}",
        what=(
            "Names differ by a prefix (`module.` from DDP, `_orig_mod.` from torch.compile, "
            "`model.` from Lightning), by a rename, or the checkpoint is a whole training state "
            'whose weights sit under a key such as "state_dict". Loading with `strict=False` '
            "silences it and leaves layers at random values, which later looks like bad "
            "pretraining: the loss starts as if from scratch."
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Strip the prefix before loading: "
                    "`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "
                    '"module.")`, and save `model.module.state_dict()` (or `model._orig_mod`) '
                    "from now on"
                ),
                expected_effect=(
                    "`load_state_dict(state)` returns without missing or unexpected keys"
                ),
                verify=(
                    "the validation metric right after loading equals that at the time of saving"
                ),
                if_it_fails=(
                    "if keys remain, print both sets and map the names, for the architecture has "
                    "changed"
                ),
            ),
            Remedy(
                change=(
                    'Take the weights out of the container: `state = checkpoint["state_dict"]` '
                    '(or "model", "model_state_dict")'
                ),
                expected_effect="the keys look like parameter names",
                verify="`len(set(state) & set(model.state_dict()))` equals the model's length",
                if_it_fails="if none are shared, another model wrote the file",
            ),
        ),
        confirm_by=(
            Ask(
                "send the lists of missing and unexpected keys, or `traindx inspect checkpoint.pt`"
            ),
        ),
        defaults={
            "keys_fact": "",
        },
        tailor=facts.missing_keys,
    ),
    Cause(
        name="state-dict-shape-mismatch",
        title="A tensor in the checkpoint has another shape than the model's{size_fact}",
        what=(
            "The same key holds another shape: another number of classes, vocabulary, width, "
            "position count, or a fused against a split projection. The checkpoint belongs to "
            "another configuration. `strict=False` does not help: it forgives missing keys, not "
            "shapes."
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change="Build the model from the configuration saved with the checkpoint",
                expected_effect="all shapes agree and loading passes",
                verify="`all(state[k].shape == v.shape for k, v in model.state_dict().items())`",
                if_it_fails=(
                    "if the configuration was not saved, read the sizes from the tensors themselves"
                ),
            ),
            Remedy(
                change=(
                    "For a new head on purpose: load first into the old architecture, then replace "
                    "the head by `nn.Linear(in_features, num_classes)`"
                ),
                expected_effect="the body is restored, only the head is new",
                verify="the body's parameters equal the file's",
                if_it_fails="if body shapes differ too, it is another model size",
            ),
        ),
        confirm_by=(
            Ask(
                "send the size-mismatch lines and the configuration that the checkpoint was made "
                "with"
            ),
        ),
        defaults={
            "size_fact": "",
        },
        tailor=facts.size_mismatch,
    ),
    Cause(
        name="best-weights-overwritten",
        title="The weights kept as the best are those of the last epoch",
        what=(
            "`state_dict()` returns the tensors of the model itself, not a copy. What is kept "
            "under `best` goes on training with the model, so that the model that is restored, "
            "returned and reported at the end is the last one, usually an overfitted one. "
            "A reference to the model (`best_model = model`) does the same"
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change="Keep a copy: `best_state = copy.deepcopy(model.state_dict())`",
                expected_effect="the final score equals the best validation score that was logged",
                verify="evaluate after restoring: the same number as in the best epoch",
                if_it_fails="save to a file with `torch.save` in the best epoch and load that",
            ),
        ),
        confirm_by=(Ask("send the code that keeps and restores the best weights", "source"),),
    ),
    Cause(
        name="incomplete-checkpoint",
        title="The checkpoint does not hold all that a resume needs",
        what=(
            "Only weights are saved. Optimizer moments, schedule, scaler, step, random states and "
            "the position in the data are lost, so a resumed run is another run: a jump in the "
            "loss, a schedule that starts again, repeated examples. For inference such a file is "
            "complete."
        ),
        severity=Severity.MEDIUM,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Save all of it: model, optimizer, scheduler, scaler, epoch and step, "
                    "`torch.get_rng_state()`, `torch.cuda.get_rng_state_all()`, Python's and "
                    "numpy's state, the sampler's position"
                ),
                expected_effect="a resumed run continues the loss curve without a jump",
                verify="train 200 steps; train 100, save, load, train 100: equal losses on the CPU",
                if_it_fails=(
                    "if the losses are equal at first and then differ, restore the sampler or use "
                    "a stateful DataLoader (`torchdata.stateful_dataloader`)"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the saving code", "source"),
            Ask("send the keys of the checkpoint (`traindx inspect checkpoint.pt`)", "checkpoint"),
        ),
        brings_about=("lr-schedule-misuse", "resume-without-optimizer-state"),
    ),
    Cause(
        name="corrupt-checkpoint",
        title="The checkpoint file is truncated or damaged",
        what=(
            'The file ends early or does not unpack ("PytorchStreamReader failed reading zip '
            'archive", "unexpected EOF", a size smaller than its sisters): the process was '
            "killed while writing, the disk was full, several ranks wrote one path, or a copy or "
            "git-lfs pointer stands in its place. Nothing can be trusted from such a file."
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Resume from the last intact checkpoint, and write atomically from now on: "
                    'save to `path + ".tmp"`, then `os.replace(tmp, path)`'
                ),
                expected_effect="a kill during saving leaves the old file whole",
                verify=(
                    "load each checkpoint right after saving, with `torch.load(path, "
                    "weights_only=True, mmap=True)`"
                ),
                if_it_fails=(
                    "if the new files are damaged as well, suspect the disk space or the file "
                    "system"
                ),
            ),
            Remedy(
                change=(
                    "Write on one rank only: `if rank == 0: torch.save(...)` and then "
                    "`dist.barrier()` on all ranks; for sharded states use "
                    "`torch.distributed.checkpoint`"
                ),
                expected_effect="one writer per file",
                verify="the modification time and size are stable after the barrier",
                if_it_fails="if it is still broken, check the storage (quota, NFS)",
            ),
        ),
        confirm_by=(
            Ask(
                "send the file size beside that of an earlier checkpoint, and the first 100 bytes "
                "(a git-lfs pointer is plain text)"
            ),
        ),
        brings_about=("state-dict-key-mismatch",),
    ),
    Cause(
        name="unsafe-checkpoint",
        title="The checkpoint is a pickle that would run code when loaded",
        what=(
            "A `.pt` or `.pkl` file can hold instructions that run on loading. This one refers to "
            "functions that no tensor needs, so it was not loaded. Saved whole modules, optimizers "
            "of a framework or `argparse.Namespace` objects are refused for the same reason "
            "without being malicious; the names of the globals tell which it is."
        ),
        severity=Severity.CRITICAL,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change="Get the weights from the author as safetensors or as a plain state dict",
                expected_effect="the file loads with `torch.load(path, weights_only=True)`",
                verify="`get_unsafe_globals_in_checkpoint(path)` returns an empty list",
                if_it_fails=(
                    "if it lists your own classes only, save `model.state_dict()` instead of the "
                    "object"
                ),
            ),
            Remedy(
                change=(
                    "If you wrote the file and know every listed name, allow exactly these: `with "
                    "torch.serialization.safe_globals([Name]): torch.load(path, weights_only=True)`"
                ),
                expected_effect="only the listed classes are admitted",
                verify="loading fails without the allowance and passes with it",
                if_it_fails=(
                    "if names such as `os.system`, `builtins.eval` or `subprocess` appear, delete "
                    "the file and find out where it came from"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "send the list from `torch.serialization.get_unsafe_globals_in_checkpoint(path)`, "
                "which reads without executing"
            ),
        ),
    ),
    Cause(
        name="unseeded-randomness",
        title="A source of randomness has no seed",
        what=(
            "Initialisation, shuffling, augmentation, dropout or sampling use a generator that "
            "nobody seeded, so two runs of one configuration differ from the first step. "
            "Differences that begin at the first loss come from here; differences that begin in "
            "the last digits after some steps come from nondeterministic kernels."
        ),
        severity=Severity.LOW,
        only_harms=REPEATABILITY,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Seed all generators first thing: `random.seed({seed}); "
                    "numpy.random.seed({seed}); torch.manual_seed({seed})`, and pass "
                    "`generator=torch.Generator().manual_seed({seed})` to loader and split"
                ),
                expected_effect=(
                    "the first ten losses of two runs are equal to the last digit on the CPU"
                ),
                verify="run twice and compare",
                if_it_fails=(
                    "if the first loss differs, something draws before the seeding, such as an "
                    "import or a model built earlier"
                ),
            ),
            Remedy(
                change=(
                    "Seed the workers: `worker_init_fn=lambda i: "
                    "numpy.random.seed(torch.initial_seed() % 2**32)`"
                ),
                expected_effect="augmentations repeat as well",
                verify="compare the first batch of two runs with `torch.equal`",
                if_it_fails=(
                    "if it differs, the order of files (`os.listdir`, sets) is not fixed; sort it"
                ),
            ),
        ),
        confirm_by=(Ask("run twice for ten steps and send both lists of losses"),),
        defaults={
            "seed": "42",
        },
        tailor=facts.seed,
    ),
    Cause(
        name="nondeterministic-operation",
        title="Results differ between runs although the seeds are set",
        what=(
            "Some kernels add floating-point numbers in varying order (atomics in scatter, "
            "index_add, some backward passes and poolings), and cudnn picks algorithms by timing. "
            "The difference starts in the last digits and grows. It is no error in itself; it only "
            "makes single runs incomparable."
        ),
        severity=Severity.LOW,
        only_harms=REPEATABILITY,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "`torch.use_deterministic_algorithms(True)`, `torch.backends.cudnn.benchmark = "
                    "False`, and `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment"
                ),
                expected_effect=(
                    "two runs agree bit for bit on the same hardware and version, somewhat slower"
                ),
                verify="compare losses of 100 steps with `==`",
                if_it_fails=(
                    "if it raises for an operation, replace that one, or accept it and compare "
                    "over seeds"
                ),
            ),
            Remedy(
                change=(
                    "Fix the data side: a constant number of workers, `in_order=True`, seeded "
                    "generators"
                ),
                expected_effect="the order of batches is the same",
                verify="print example ids of the first 100 batches",
                if_it_fails="if the order is equal and the losses differ, suspect the kernels",
            ),
        ),
        confirm_by=(
            Ask(
                "run twice with `torch.use_deterministic_algorithms(True)` and send the error "
                "that names the operation, or both loss lists"
            ),
        ),
    ),
    Cause(
        name="worker-seed-duplication",
        title="Data-loader workers draw the same random numbers",
        what=(
            "Each worker is a copy of the process, so a numpy `Generator` or `RandomState` made in "
            "the dataset's `__init__` is copied with its state, and all workers draw the same "
            "augmentations; without persistent workers, again in every epoch. Current PyTorch "
            "seeds the *global* numpy and Python generators per worker, old versions (before 1.9) "
            "and a `worker_init_fn` with a fixed seed do not. Augmentation is then less varied "
            "than it seems."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Make the generator in the worker: in `worker_init_fn`, `info = "
                    "torch.utils.data.get_worker_info(); info.dataset.rng = "
                    "numpy.random.default_rng(info.seed)`"
                ),
                expected_effect="workers draw different numbers, and epochs differ",
                verify="collect the drawn parameters of an epoch: hardly any duplicates",
                if_it_fails="if ranks have duplicates, add the rank to the seed",
            ),
            Remedy(
                change=(
                    "Use torch's generator for augmentation, which is seeded per worker: "
                    "`torch.rand(())`"
                ),
                expected_effect="no copies of state",
                verify="the same count of duplicates",
                if_it_fails="duplicates come from caching, not from seeds",
            ),
        ),
        confirm_by=(Ask("print the first random number of each worker in two epochs"),),
        brings_about=("overfitting",),
    ),
    Cause(
        name="data-order-lost-on-resume",
        title="A resumed run begins its data anew",
        what=(
            "The checkpoint was taken in the middle of an epoch and holds neither the position in "
            "the data nor the state of what shuffles them. After a restart the first examples are "
            "trained on again and the last ones never; a job that is pre-empted often sees little "
            "else than the beginning."
        ),
        severity=Severity.MEDIUM,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Save the batch index and the generator's `get_state()` of the epoch's start "
                    "with the checkpoint; on resuming `set_state` it and skip that many batches"
                ),
                expected_effect="the resumed run goes on with the next batch",
                verify="print the ids of the batches after a resume: they follow the last saved",
                if_it_fails="if workers prefetch, count the batches that were trained on, not read",
            ),
            Remedy(
                change=(
                    "Use `torchdata.stateful_dataloader.StatefulDataLoader` and save its "
                    "`state_dict()`"
                ),
                expected_effect="position and order are part of the checkpoint",
                verify="the same printed ids",
                if_it_fails="a dataset of one's own needs `state_dict` and `load_state_dict`, too",
            ),
        ),
        confirm_by=(Ask("compare the ids of the first batches of a fresh and of a resumed run"),),
        brings_about=("overfitting",),
    ),
)

"""Causes in device and host memory."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DATA, MEMORY, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="activation-memory",
        title="A step needs more memory than the device has{allocation_fact}",
        what=(
            "Activations kept for the backward pass grow with batch × length (squared for plain "
            "attention) × layers, and exceed what is free. The failure comes in the first steps, "
            "or at the first long batch, and at about the same place. Memory that climbs from step "
            "to step is a leak; much reserved but unallocated memory is fragmentation; another "
            "process on the device shows in `nvidia-smi`."
        ),
        severity=Severity.HIGH,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Reduce {batch_cut} and accumulate gradients over two micro-batches, which "
                    "leaves the effective batch as it is"
                ),
                expected_effect=(
                    "peak memory falls by nearly half of its activation part; the loss curve stays"
                ),
                verify=(
                    "`torch.cuda.max_memory_allocated()` after three steps, the longest batch "
                    "included"
                ),
                if_it_fails="if it hardly falls, weights and optimizer state dominate",
            ),
            Remedy(
                change=(
                    "Recompute activations: `torch.utils.checkpoint.checkpoint(block, x, "
                    "use_reentrant=False)` per block"
                ),
                expected_effect=(
                    "activation memory falls several-fold, step time rises by about a third"
                ),
                verify="the same peak measure",
                if_it_fails="if that is not enough, shard with FSDP2 (`fully_shard`)",
            ),
            Remedy(
                change=(
                    "Run the forward pass in bfloat16 autocast, with "
                    "`F.scaled_dot_product_attention` for attention"
                ),
                expected_effect=(
                    "activations take half, attention memory grows linearly with length"
                ),
                verify="the peak at the longest sequence",
                if_it_fails="pad less, by grouping examples by length",
            ),
        ),
        confirm_by=(
            Ask(
                "send the full out-of-memory message (it holds allocated, reserved and free)",
                "failure",
            ),
            Ask("log the memory after each of the first ten steps"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "batch_cut": "the batch size by half",
            "allocation_fact": "",
        },
        tailor=facts.all_of(facts.batch_size, facts.allocation),
    ),
    Cause(
        name="graph-kept-alive",
        title="Something keeps every step's graph alive",
        what=(
            "`total += loss`, a list of outputs, metrics or attention maps that still carry their "
            "graph: each holds all activations of its step, so memory climbs by a constant amount "
            "per step until it runs out, often after many good steps. A constant need that is too "
            "large fails at once; fragmentation grows irregularly."
        ),
        severity=Severity.HIGH,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Store numbers, not graphs: `total += loss.item()` (or `loss.detach()` to "
                    "avoid a synchronisation), `outputs.append(out.detach().cpu())`"
                ),
                expected_effect=(
                    "allocated memory at the end of each step is flat from the second step on"
                ),
                verify="compare steps 10 and 200",
                if_it_fails=(
                    "if it still climbs, take `torch.cuda.memory._record_memory_history()` and a "
                    "snapshot, and look for the oldest live tensors"
                ),
            ),
            Remedy(
                change="Detach recurrent or cached state between steps",
                expected_effect="step time is flat as well",
                verify="time steps 10 and 200",
                if_it_fails="if a hook or callback stores tensors, remove callbacks one at a time",
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("log `torch.cuda.memory_allocated()` for every step"),
        ),
        brings_about=("activation-memory", "host-memory-growth"),
    ),
    Cause(
        name="evaluation-outputs-kept",
        title="The outputs of a whole evaluation stay on the device",
        what=(
            "Every batch of validation adds its full outputs to a list on the device, and they are "
            "concatenated at the end: scores of every token or pixel for every class, of the whole "
            "validation set at once. Memory grows with the size of the validation set and is "
            "needed twice while they are concatenated; it runs out at the end of an epoch that "
            "trained well."
        ),
        severity=Severity.MEDIUM,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Reduce each batch to what the metric needs (a sum of losses, counts of hits, "
                    "`argmax`), or move the outputs with `.cpu()` before they are kept"
                ),
                expected_effect="memory in validation no longer grows from batch to batch",
                verify="print `torch.cuda.memory_allocated()` every few validation batches",
                if_it_fails="if it still grows, look for other lists that tensors are appended to",
            ),
        ),
        confirm_by=(
            Ask("send the evaluation code", "source"),
            Ask("print the shape of what is concatenated"),
        ),
    ),
    Cause(
        name="evaluation-with-grad",
        title="Validation builds graphs that nobody uses",
        what=(
            "Without `no_grad` or `inference_mode`, every validation forward pass keeps its "
            "activations, so memory peaks or runs out in validation although training fits, and "
            "validation is slower than it need be. `model.eval()` does not switch gradients off. "
            "Failure right at the first validation is the sign."
        ),
        severity=Severity.MEDIUM,
        only_harms=("memory", "oom", "slow", "speed", "long"),
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Decorate evaluation with `@torch.inference_mode()` (or use `with "
                    "torch.no_grad():`)"
                ),
                expected_effect=(
                    "peak memory in validation falls well below that in training, and it runs "
                    "faster"
                ),
                verify=(
                    "`torch.cuda.reset_peak_memory_stats()` before validation, and read the peak "
                    "after it"
                ),
                if_it_fails=(
                    "if it is still high, outputs of all batches are kept on the device; move "
                    "them with `.cpu()`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the evaluation code", "source"),
            Ask("print `out.requires_grad` inside the evaluation"),
        ),
        brings_about=("activation-memory",),
    ),
    Cause(
        name="memory-fragmentation",
        title="Free memory is split into pieces that are too small",
        what=(
            "The allocator holds much reserved and unallocated memory, and no block is large "
            "enough. Varying sizes (sequence length, last batches, alternating training and "
            "validation) do that. The message itself shows it: reserved far above allocated, a "
            "small request that fails. If allocated alone is near the limit, the need is real."
        ),
        severity=Severity.MEDIUM,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Start with `PYTORCH_ALLOC_CONF=expandable_segments:True` "
                    "(`PYTORCH_CUDA_ALLOC_CONF` in older versions)"
                ),
                expected_effect="reserved stays within some per cent of allocated",
                verify="log `memory_reserved() - memory_allocated()` over an epoch",
                if_it_fails="if the gap stays, sizes vary too much; pad to a few fixed lengths",
            ),
            Remedy(
                change=(
                    "Group batches by length and pad to multiples (64), and run the largest batch "
                    "first"
                ),
                expected_effect=(
                    "the number of distinct sizes falls, and the allocator reuses blocks"
                ),
                verify="count distinct input shapes over an epoch",
                if_it_fails=(
                    "if it fails at the largest batch at once, there is too little memory, not "
                    "fragmentation"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the full out-of-memory message", "failure"),
            Ask("print `torch.cuda.memory_summary()` before the failing step"),
        ),
        brings_about=("activation-memory",),
    ),
    Cause(
        name="optimizer-state-memory",
        title="The optimizer's state takes most of the memory",
        what=(
            "Adam keeps two float32 values per parameter, and mixed precision often a master copy: "
            "16 bytes per parameter with weights and gradients, so a model of 1 billion parameters "
            "needs 16 GB before any activation. The run fails at the first `optimizer.step()`, "
            "where the state is made, and a smaller batch does not help."
        ),
        severity=Severity.MEDIUM,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Shard the state: FSDP2 `fully_shard(model)` or `ZeroRedundancyOptimizer` "
                    "across devices"
                ),
                expected_effect="state per device falls by the number of devices",
                verify="`torch.cuda.memory_allocated()` after the first step",
                if_it_fails="if weights and gradients remain, shard those too (FSDP2)",
            ),
            Remedy(
                change=(
                    "Use a smaller state: 8-bit AdamW (bitsandbytes), Adafactor, or train adapters "
                    "only (LoRA)"
                ),
                expected_effect="state falls to a quarter or less",
                verify="sum `t.numel() * t.element_size()` over `optimizer.state`",
                if_it_fails="if the peak lies in activations, checkpoint them",
            ),
        ),
        confirm_by=(
            Ask(
                "send the parameter count, the optimizer and its dtype, and the peak before and "
                "after the first step"
            ),
        ),
        brings_about=("activation-memory",),
    ),
    Cause(
        name="device-shared",
        title="Another process holds the device's memory",
        what=(
            "The device is nearly full before the run allocates: a colleague's job, a notebook "
            "kernel, or a zombie of the last run. The message shows little memory used by this "
            "process and little free in total. The same script passes on an idle device."
        ),
        severity=Severity.MEDIUM,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "End your own stale process, or choose a free device: `CUDA_VISIBLE_DEVICES=1`"
                ),
                expected_effect="free memory at the start is near the device's total",
                verify="`torch.cuda.mem_get_info()` before the model is built",
                if_it_fails="if memory is free and the run still fails, it is its own need",
            ),
            Remedy(
                change=(
                    "Make each rank use its own device: "
                    '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before any CUDA call'
                ),
                expected_effect="no second process on device 0",
                verify="`nvidia-smi` lists one process per device",
                if_it_fails=(
                    "`torch.load` without `map_location` puts all ranks' tensors on device 0"
                ),
            ),
        ),
        confirm_by=(Ask("send the output of `nvidia-smi` while the run starts"),),
        brings_about=("activation-memory", "straggler-rank"),
    ),
    Cause(
        name="host-memory-growth",
        title="The host's memory grows until it runs out",
        what=(
            "Resident memory of the process or its workers climbs over the epoch: a cache or list "
            "without bound, results kept for the whole epoch, or worker processes whose reference "
            "counts touch every Python object of a large list, so that copy-on-write copies it per "
            "worker. It ends with the kernel's killer, seldom with a Python error. Device memory "
            "is unaffected."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Keep large indices in numpy arrays, Arrow or memory maps, not in Python lists "
                    'of objects: `np.load(path, mmap_mode="r")`'
                ),
                expected_effect="memory per worker is flat after the first batches",
                verify="the resident memory at the start and the end of an epoch",
                if_it_fails=(
                    "if it grows in the main process, look for lists that collect losses or outputs"
                ),
            ),
            Remedy(
                change=(
                    "Bound the caches (`functools.lru_cache(maxsize=...)`), reduce {workers_cut} "
                    "or `prefetch_factor`"
                ),
                expected_effect="the sum over workers fits the host",
                verify="workers × prefetch_factor × batch bytes is below free memory",
                if_it_fails=(
                    "if it still grows with `num_workers=0`, the dataset itself leaks; use "
                    "`tracemalloc`"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "log resident memory of the main process and of each worker over an epoch "
                "(`psutil`)"
            ),
        ),
        brings_about=("killed-by-host", "worker-crash"),
        defaults={
            "workers_cut": "the number of workers by half",
        },
        tailor=facts.workers,
    ),
    Cause(
        name="shared-memory-exhausted",
        title="/dev/shm is too small for the data loader's workers",
        what=(
            "Workers pass batches through shared memory; containers grant 64 MB by default. Then a "
            'worker dies with "Bus error" or "No space left on device" while disks have room, '
            "at larger batches or more workers. With `num_workers=0` the run passes, which settles "
            "it."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Give the container more: `docker run --shm-size=8g` (or `--ipc=host`); on "
                    "Kubernetes an `emptyDir` of medium Memory at /dev/shm"
                ),
                expected_effect=(
                    "`df -h /dev/shm` shows the new size, and no worker dies over an epoch"
                ),
                verify="the usage of /dev/shm during training stays below 80 %",
                if_it_fails=(
                    "if it fills over time, workers leak tensors; look at what the collate "
                    "function keeps"
                ),
            ),
            Remedy(
                change=(
                    "Where you cannot: reduce {workers_cut}, `prefetch_factor=1`, or "
                    '`torch.multiprocessing.set_sharing_strategy("file_system")`'
                ),
                expected_effect="peak usage falls in proportion",
                verify="workers × prefetch × batch bytes against the size",
                if_it_fails="if it fails with one worker, a single batch is too large",
            ),
        ),
        confirm_by=(
            Ask(
                "send the output of `df -h /dev/shm` inside the container, and the batch size in "
                "bytes"
            ),
        ),
        brings_about=("worker-crash",),
        defaults={
            "workers_cut": "the number of workers by half",
        },
        tailor=facts.workers,
    ),
)

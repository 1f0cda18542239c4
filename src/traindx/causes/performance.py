"""Causes that make training slower than the machine allows."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DISTRIBUTED, PERFORMANCE, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="data-loading-bound",
        title="The step waits for data",
        what=(
            "The device is idle while the next batch is read, decoded or collated. Time between "
            "the end of one step and the start of the next is a large part of the whole, and "
            "utilisation goes in bursts. Replacing the loader by one cached batch makes the run "
            "fast: that settles it. If it stays slow with a cached batch, the limit lies in the "
            "step."
        ),
        severity=Severity.MEDIUM,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Raise {workers_raise}, with `pin_memory=True`, `persistent_workers=True`, "
                    "`prefetch_factor=4`, and `.to(device, non_blocking=True)`"
                ),
                expected_effect=(
                    "waiting time per step falls towards 0 and throughput to that of the cached "
                    "batch"
                ),
                verify="measure throughput with and without a cached batch: within 5 %",
                if_it_fails="if workers are all busy, make each example cheaper",
            ),
            Remedy(
                change=(
                    "Do the costly part once: decode, resize and tokenise beforehand, store in "
                    "large sequential files (webdataset, Arrow, memmap)"
                ),
                expected_effect="CPU time per example falls several-fold",
                verify="time `dataset[i]` alone",
                if_it_fails=(
                    "if reading dominates, storage is the limit, so copy the data to a local disk"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "time the loader alone over 200 batches, and the step alone on one cached batch; "
                "or send a profiler trace"
            ),
        ),
        brings_about=("straggler-rank",),
        defaults={
            "workers_raise": "`num_workers` to the number of cores per device",
        },
        tailor=facts.workers,
    ),
    Cause(
        name="host-bound",
        title="The host cannot launch work as fast as the device finishes it",
        what=(
            "Many tiny kernels, Python overhead and small tensors keep the device waiting for "
            "launches. A trace shows short kernels with gaps, one core at 100 %, and step time "
            "that hardly changes with batch size. With slow data the gap is one long block per "
            "step; here there are thousands of small ones."
        ),
        severity=Severity.MEDIUM,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    'Compile: `model = torch.compile(model)`, with `mode="reduce-overhead"` '
                    "(CUDA graphs) where shapes are fixed"
                ),
                expected_effect=(
                    "fewer and longer kernels; step time falls noticeably after the first (slow) "
                    "steps"
                ),
                verify="kernel count per step in the trace, before and after",
                if_it_fails=(
                    "if nothing changes, suspect graph breaks and run with "
                    "`TORCH_LOGS=graph_breaks`"
                ),
            ),
            Remedy(
                change=(
                    "Give each launch more to do: raise {batch_raise}, fused optimizers "
                    "(`torch.optim.AdamW(..., fused=True)`), batched operations instead of Python "
                    "loops"
                ),
                expected_effect="step time grows far less than the batch",
                verify="examples per second at two batch sizes",
                if_it_fails="if time grows in proportion, the device is busy, not the host",
            ),
        ),
        confirm_by=(
            Ask("send a trace of ten steps by `torch.profiler`, with CPU and CUDA activities"),
        ),
        defaults={
            "batch_raise": "the batch size twofold",
        },
        tailor=facts.batch_size,
    ),
    Cause(
        name="synchronisation-in-loop",
        title="The loop forces the device to synchronise at every step",
        what=(
            "`.item()`, `.cpu()`, `print(tensor)`, `if tensor > 0` and `torch.cuda.synchronize()` "
            "make the host wait until the device is done, so launches can no longer run ahead. One "
            "per step costs little when steps are long and much when they are short; dozens per "
            "step always cost. In a trace they stand as long `cudaStreamSynchronize` or "
            "`cudaMemcpyAsync` calls."
        ),
        severity=Severity.MEDIUM,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Log every 50 to 100 steps, and accumulate on the device: `running += "
                    "loss.detach()`, then one `.item()`"
                ),
                expected_effect=(
                    "synchronisations per step fall to near 0; step time falls by the waiting time"
                ),
                verify="count warnings of the sync debug mode over ten steps",
                if_it_fails=(
                    "if they remain inside the model, replace `if tensor.any()` by `torch.where`, "
                    "boolean indexing by multiplication with the mask"
                ),
            ),
            Remedy(
                change=(
                    'Copy without waiting: `.to("cpu", non_blocking=True)` into pinned memory, '
                    "read a step later"
                ),
                expected_effect="copies overlap with compute",
                verify="a trace shows both at the same time",
                if_it_fails="if the data are needed at once, the cost is real",
            ),
        ),
        confirm_by=(
            Ask(
                'run ten steps with `torch.cuda.set_sync_debug_mode("warn")` and send the warnings'
            ),
        ),
        brings_about=("host-bound",),
    ),
    Cause(
        name="underutilised-batch",
        title="Each step has too little work to fill the device{batch_in_use}",
        what=(
            "The kernels are so small that most of the device stays empty; throughput grows nearly "
            "in proportion with the batch. Memory is far from full and power draw low. It costs "
            "time, not correctness, and a small batch may be wanted for generalisation."
        ),
        severity=Severity.LOW,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Raise {batch_raise}, and the learning rate with it (linearly for SGD, by the "
                    "square root for Adam), with warm-up"
                ),
                expected_effect=(
                    "examples per second rise; validation after equal epochs stays within noise"
                ),
                verify="compare both at equal numbers of examples",
                if_it_fails="if throughput does not rise, the host or the data limit it",
            ),
            Remedy(
                change="Run several runs on one device (seeds, sweeps)",
                expected_effect="total throughput rises while each run slows little",
                verify="examples per second over all runs",
                if_it_fails="if each slows in proportion, the device was full",
            ),
        ),
        confirm_by=(
            Ask("measure examples per second for the present, twofold and fourfold batch"),
        ),
        brings_about=("host-bound",),
        defaults={
            "batch_raise": "the batch size until throughput stops growing",
            "batch_in_use": "",
        },
        tailor=facts.batch_size,
    ),
    Cause(
        name="recompilation",
        title="torch.compile recompiles again and again",
        what=(
            "A guard fails in many steps (a new sequence length, a Python number that changes, a "
            "new optimizer object), and each failure compiles anew for seconds to minutes, until "
            "the limit of 8 versions is reached and the code runs uncompiled. Slow first steps are "
            "normal; slow steps that return are not."
        ),
        severity=Severity.MEDIUM,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Mark what varies: `torch.compile(model, dynamic=True)` or "
                    "`torch._dynamo.mark_dynamic(x, 1)`; pass changing numbers as tensors"
                ),
                expected_effect="no recompilation after the first two or three steps",
                verify="count lines of `TORCH_LOGS=recompiles` per hundred steps: 0",
                if_it_fails=(
                    "if the reason names an attribute, keep it constant, or leave it outside of "
                    "the compiled function"
                ),
            ),
            Remedy(
                change="Reduce the number of shapes: pad to a few lengths, `drop_last=True`",
                expected_effect="as many versions as there are lengths",
                verify="the set of input shapes over an epoch",
                if_it_fails="if it guards on object identity, create optimizer and modules once",
            ),
        ),
        confirm_by=(Ask("run with `TORCH_LOGS=recompiles` and send the reasons it prints"),),
        brings_about=("host-bound",),
    ),
    Cause(
        name="graph-breaks",
        title="torch.compile falls back to Python inside the model",
        what=(
            "Prints, `.item()`, data-dependent branches, unsupported calls and some hooks end the "
            "compiled graph and start a new one, so little is fused and the gain is lost. "
            "Correctness is not affected."
        ),
        severity=Severity.LOW,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Remove the reason at the line it names: `torch.where` or `torch.cond` for "
                    "branches, logging outside of `forward`, no `.item()`"
                ),
                expected_effect=(
                    "one graph per forward pass, and step time falls below the eager one"
                ),
                verify="`torch.compile(model, fullgraph=True)` raises no error",
                if_it_fails=(
                    "if it names library code, compile the inner blocks instead of the whole"
                ),
            ),
            Remedy(
                change="Compile the repeated block only: `for b in model.blocks: b.compile()`",
                expected_effect="short compile times, most of the gain",
                verify="step time against eager",
                if_it_fails="if there is no gain, the kernels are large already",
            ),
        ),
        confirm_by=(
            Ask(
                "run with `TORCH_LOGS=graph_breaks`, or `torch._dynamo.explain(model)(x)`, and "
                "send the reasons"
            ),
        ),
        brings_about=("host-bound",),
    ),
    Cause(
        name="communication-bound",
        title="Collectives are not hidden behind computation",
        what=(
            "A large part of the step is spent in all-reduce, all-gather or reduce-scatter while "
            "nothing else runs: slow links between nodes, too little work per step, many small "
            "buckets, or no overlap. Throughput per device falls as devices are added. If one rank "
            "always arrives late, the others wait *inside* the collective: that is a straggler, "
            "not the network."
        ),
        severity=Severity.MEDIUM,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Communicate less often: accumulate over {accumulation} micro-batches under "
                    "`model.no_sync()` except for the last"
                ),
                expected_effect=(
                    "collectives per optimizer step fall by that factor, and the scaling "
                    "efficiency rises"
                ),
                verify="throughput per device on 1 and N devices",
                if_it_fails="if it hardly changes, the collectives wait for a slow rank",
            ),
            Remedy(
                change=(
                    "Send less: bf16 gradients (`ddp.register_comm_hook(None, "
                    "bf16_compress_hook)`), `bucket_cap_mb=100`, `gradient_as_bucket_view=True`; "
                    "hybrid sharding within nodes"
                ),
                expected_effect="time in collectives falls by about half",
                verify="the sum of exposed communication in the trace",
                if_it_fails=(
                    "if the bandwidth is below the hardware's, run nccl-tests, check NVLink and "
                    "InfiniBand (`NCCL_DEBUG=INFO`)"
                ),
            ),
        ),
        confirm_by=(Ask("send profiler traces of two ranks for the same ten steps"),),
        defaults={
            "accumulation": "several",
        },
        tailor=facts.accumulation,
    ),
    Cause(
        name="straggler-rank",
        title="One rank is slower than the others",
        what=(
            "All ranks wait for the slowest at each collective, so its delay is everybody's. On "
            "the slow rank collectives are short and the computation is long; on the others it is "
            "the reverse. Thermal throttling, a shared device, uneven batches, and work that only "
            "rank 0 does (saving, logging, evaluation) are the reasons."
        ),
        severity=Severity.MEDIUM,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Even out the work: batches of equal total length on every rank, saving and "
                    "logging in the background"
                ),
                expected_effect="time per step is within some per cent across ranks",
                verify="the spread of compute time per rank over a hundred steps",
                if_it_fails=(
                    "if it is always the same machine, look at clocks, temperature, `nvidia-smi "
                    "-q -d PERFORMANCE`, other processes"
                ),
            ),
            Remedy(
                change="Take the slow machine out",
                expected_effect="the step time falls to that of the others",
                verify="rerun without it",
                if_it_fails=(
                    "if another rank becomes slow, the cause moves with the data or the rank's role"
                ),
            ),
        ),
        confirm_by=(
            Ask("log the time of forward, backward and data per rank, or send traces of all ranks"),
        ),
        brings_about=("collective-mismatch", "communication-bound"),
    ),
    Cause(
        name="precision-unused",
        title="Matrix products run in full fp32 although faster precisions are available",
        what=(
            "On devices with tensor cores, TF32 or bf16 products are several times as fast as fp32 "
            'ones and seldom change the result. PyTorch warns "TensorFloat32 tensor cores … '
            'available but not enabled". It matters only where products dominate: profile first.'
        ),
        severity=Severity.LOW,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change='`torch.set_float32_matmul_precision("high")` at the start',
                expected_effect=(
                    "products run two to several times as fast; the loss curve stays within noise"
                ),
                verify="step time and loss after 200 steps, both settings",
                if_it_fails=(
                    "if step time stays, products do not dominate; look at the data and at launches"
                ),
            ),
            Remedy(
                change='Forward pass and loss in `torch.autocast("cuda", dtype=torch.bfloat16)`',
                expected_effect="less memory and a shorter step",
                verify="validation metric after an epoch is equal within noise",
                if_it_fails=(
                    "if the metric falls, keep sensitive operations (norms, losses) in fp32"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "send a trace; the kernel names show the precision, and the share of matrix "
                "products shows the gain"
            ),
        ),
    ),
    Cause(
        name="checkpoint-overhead",
        title="Saving or logging takes a large part of the time",
        what=(
            "Checkpoints, images, histograms or evaluation come so often, or so slowly, that "
            "training stands still for them. The step time has regular peaks at the saving "
            "interval. Slow network storage makes it worse."
        ),
        severity=Severity.LOW,
        specialist=PERFORMANCE,
        remedies=(
            Remedy(
                change=(
                    "Raise {save_interval} until saving takes under 5 % of the time; keep the last "
                    "few and the best"
                ),
                expected_effect="the regular peaks of the step time become rare",
                verify="the sum of saving time over the run time",
                if_it_fails="if saving is rare and still slow, suspect storage",
            ),
            Remedy(
                change=(
                    "Save in the background: `torch.distributed.checkpoint.async_save`, or copy to "
                    "CPU and write from a thread"
                ),
                expected_effect="the step time at a save is nearly ordinary",
                verify="the peak of the step time at a save",
                if_it_fails=(
                    "if copying to the CPU dominates, save less (no optimizer state in every file)"
                ),
            ),
        ),
        confirm_by=(Ask("log the duration of each save and its interval"),),
        brings_about=("straggler-rank",),
        defaults={
            "save_interval": "the saving interval",
        },
        tailor=facts.save_interval,
    ),
)

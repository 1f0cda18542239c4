"""Causes between the ranks of a distributed run."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DISTRIBUTED, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="ddp-unused-parameters",
        title="A parameter got no gradient on some rank{unused_fact}",
        what=(
            "DistributedDataParallel waits for a gradient of every parameter. Where one takes no "
            "part in the loss (an unused layer, a branch, an expert without tokens), the next "
            'iteration raises "Expected to have finished reduction in the prior iteration", or '
            "ranks wait forever where they disagree. `find_unused_parameters=True` is right for "
            "true control flow; for a forgotten layer it hides a bug and costs a traversal per "
            "step."
        ),
        severity=Severity.HIGH,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Use the layer in the loss, or remove or freeze it (`requires_grad_(False)` "
                    "before wrapping)"
                ),
                expected_effect=(
                    "every parameter has a gradient on every rank, and the error is gone"
                ),
                verify="after one backward pass on one process: no `p.grad is None`",
                if_it_fails="if it is None on some batches only, suspect control flow",
            ),
            Remedy(
                change=(
                    "Where control flow is meant: `DistributedDataParallel(model, "
                    "find_unused_parameters=True)`, or `static_graph=True` if the unused set never "
                    "changes"
                ),
                expected_effect="iterations complete; the step gets some per cent slower",
                verify="ten iterations with `TORCH_DISTRIBUTED_DEBUG=DETAIL` without a report",
                if_it_fails="if it hangs, ranks run different numbers of forward passes",
            ),
        ),
        confirm_by=(
            Ask(
                "run with `TORCH_DISTRIBUTED_DEBUG=DETAIL`, which names the parameters, and send "
                "the message"
            ),
        ),
        brings_about=("collective-mismatch",),
        defaults={
            "unused_fact": "",
        },
        tailor=facts.unused_parameters,
    ),
    Cause(
        name="collective-mismatch",
        title="The ranks do not call the same collectives in the same order",
        what=(
            "A collective completes only if every rank calls it, in the same order, with fitting "
            "shapes. A branch on the rank, an early `continue`, evaluation or saving on rank 0 "
            "with a barrier or all-reduce inside, and different shapes break that: the run hangs "
            "until the timeout (10 minutes for NCCL, 30 for Gloo), or reads garbage. If a rank had "
            "died first, the timeout on the others is a mere consequence: look for the earliest "
            "error over all ranks."
        ),
        severity=Severity.CRITICAL,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Call collectives unconditionally: take them out of `if rank == 0:`; let rank "
                    "0 do only what no collective depends on"
                ),
                expected_effect="all ranks pass the point at which the run hung",
                verify="`TORCH_DISTRIBUTED_DEBUG=DETAIL` reports no mismatch over a hundred steps",
                if_it_fails="if the same collective has other shapes, gather sizes first and pad",
            ),
            Remedy(
                change=(
                    "Let one rank decide and tell the others: `dist.broadcast(flag, src=0)` for "
                    "early stopping, skipped batches and the like"
                ),
                expected_effect="the ranks leave loops in the same step",
                verify="log the step number at the end on each rank: equal",
                if_it_fails="if the numbers of batches differ, see `uneven-inputs`",
            ),
        ),
        confirm_by=(
            Ask("run `traindx run -- torchrun …`", "recording"),
            Ask(
                "send the logs of all ranks and the flight-recorder dump "
                "(`TORCH_NCCL_DUMP_ON_TIMEOUT=1`)"
            ),
        ),
    ),
    Cause(
        name="rank-failed-first",
        title="Another rank failed first{rank_fact}, and the reported error is its consequence",
        what=(
            "When one rank dies, the others wait in a collective and report a timeout, "
            '"connection closed by peer" or a broken pipe, often minutes later and on all of '
            "them. The cause is the earliest error, on one rank: an exception, an out-of-memory "
            "kill, a lost node. torchrun's summary marks it as \"Root Cause (first observed "
            'failure)", which may still be the wrong one if clocks or buffering interfere.'
        ),
        severity=Severity.CRITICAL,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Find the first error and repair that; decorate the entry point with "
                    "`torch.distributed.elastic.multiprocessing.errors.record` so that its "
                    "traceback reaches the summary"
                ),
                expected_effect=(
                    "the summary shows a Python traceback in place of a signal or timeout"
                ),
                verify=(
                    "the earliest time stamp over all rank logs belongs to the error you repaired"
                ),
                if_it_fails=(
                    "if there is no Python error, the process was killed; look at `dmesg`, the "
                    "scheduler and the node's health"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "send the logs of every rank with time stamps (`torchrun --redirects 3 --log-dir "
                "logs …`)"
            ),
        ),
        brings_about=("collective-mismatch", "rendezvous-failure"),
        defaults={
            "rank_fact": "",
        },
        tailor=facts.first_rank,
    ),
    Cause(
        name="uneven-inputs",
        title="The ranks run different numbers of steps",
        what=(
            "One rank runs out of batches earlier (a dataset that does not divide, an iterable "
            "dataset split unevenly, filtered examples, skipped batches) and leaves the loop, "
            "while the others wait in its gradient all-reduce. The hang falls at the end of an "
            "epoch, which sets it apart from other mismatches."
        ),
        severity=Severity.HIGH,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Give each rank the same number: `DistributedSampler(dataset, drop_last=True)` "
                    "with `drop_last=True` in the loader; for iterable datasets stop all at the "
                    "smallest count"
                ),
                expected_effect="all ranks end the epoch at the same step",
                verify="print the step count per rank",
                if_it_fails="if counts agree and it hangs, a branch skips a collective",
            ),
            Remedy(
                change=(
                    "Or let DDP handle the rest: `with model.join():` around the loop "
                    "(`torch.distributed.algorithms.join.Join`)"
                ),
                expected_effect="ranks that are done shadow the collectives of the others",
                verify="the epoch ends without a timeout",
                if_it_fails=(
                    "if other collectives than DDP's run in the loop, join does not know them"
                ),
            ),
        ),
        confirm_by=(Ask("log the number of batches per rank at the end of the epoch"),),
        brings_about=("collective-mismatch",),
    ),
    Cause(
        name="missing-distributed-sampler",
        title="Every rank sees the same data",
        what=(
            "Without a DistributedSampler (or sharding of an iterable dataset) each rank iterates "
            "over the whole dataset, often in the same order with the same seed. N devices then do "
            "the work of one: an epoch takes as many steps as on one device and gradients are "
            "averaged over copies. The loss looks healthy; only the number of steps per epoch, "
            "equal to that of a single process, gives it away."
        ),
        severity=Severity.HIGH,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "`sampler = DistributedSampler(dataset, shuffle=True)`, `DataLoader(dataset, "
                    "sampler=sampler, shuffle=False)`, and `sampler.set_epoch(epoch)` in each epoch"
                ),
                expected_effect=(
                    "steps per epoch fall by the number of ranks, and indices are disjoint"
                ),
                verify="gather the indices of a step over ranks: no duplicates",
                if_it_fails=(
                    "if they are still equal, a framework replaces the loader, or the dataset is "
                    "iterable"
                ),
            ),
            Remedy(
                change=(
                    "For an iterable dataset split by rank *and* worker: `islice(it, rank * "
                    "workers + worker, None, world * workers)`"
                ),
                expected_effect="each example is read once per epoch",
                verify="count example ids over ranks for an epoch",
                if_it_fails="if duplicates remain, shards are assigned with replacement",
            ),
        ),
        confirm_by=(
            Ask(
                "print the first example indices on each rank, and `len(loader)` on one and on N "
                "processes"
            ),
        ),
    ),
    Cause(
        name="sampler-epoch-not-set",
        title="The data come in the same order in every epoch",
        what=(
            "`DistributedSampler` shuffles with seed + epoch, and the epoch stays 0 unless "
            "`set_epoch` is called. Every epoch then repeats the same order and the same batches: "
            "the loss curve repeats its pattern from epoch to epoch and generalisation suffers "
            "slightly."
        ),
        severity=Severity.MEDIUM,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change="Call `train_loader.sampler.set_epoch(epoch)` at the start of each epoch",
                expected_effect=(
                    "the first indices differ between epochs, and repeated patterns of the loss "
                    "vanish"
                ),
                verify="compare the first batch of epochs 0 and 1",
                if_it_fails=(
                    "if they are equal, the call reaches another sampler object (Accelerate and "
                    "Lightning call it themselves)"
                ),
            ),
        ),
        confirm_by=(Ask("print the first ten indices at the start of two epochs"),),
        brings_about=("unshuffled-training-data",),
    ),
    Cause(
        name="rank-desync",
        title="The parameters differ between ranks",
        what=(
            "DDP keeps ranks equal only by equal starts and equal updates. Parameters changed on "
            "one rank alone (loading on rank 0, re-initialisation after wrapping, unregistered "
            "parameters, custom updates, skipped steps) make them drift apart for good; losses per "
            "rank diverge, and the saved model is that of rank 0. Different losses on different "
            "data are normal: compare weights."
        ),
        severity=Severity.CRITICAL,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Load and initialise before wrapping, on every rank; after a manual change "
                    "broadcast: `for p in model.parameters(): dist.broadcast(p.data, 0)`"
                ),
                expected_effect="the checksums agree on all ranks at all times",
                verify=(
                    "`torch.stack([p.double().sum() for p in model.parameters()])`, all-gathered: "
                    "identical rows"
                ),
                if_it_fails=(
                    "if they drift during training, suspect parameters outside of DDP, or a step "
                    "that one rank skips"
                ),
            ),
            Remedy(
                change=(
                    "Call the wrapped model, `ddp_model(x)`, not `ddp_model.module(x)`: only the "
                    "wrapper arranges for gradient reduction"
                ),
                expected_effect="gradients agree over ranks after backward",
                verify="compare `p.grad.norm()` over ranks",
                if_it_fails=(
                    "if they agree and weights drift, optimizer state differs; restore it on all "
                    "ranks"
                ),
            ),
        ),
        confirm_by=(Ask("compare a checksum of the parameters over ranks after a hundred steps"),),
        brings_about=("collective-mismatch",),
    ),
    Cause(
        name="rendezvous-failure",
        title="The ranks cannot find each other",
        what=(
            "The process group does not form: wrong MASTER_ADDR or port, a port in use, a world "
            "size that counts processes which do not exist, a firewall, or the wrong network "
            "interface. It fails or hangs in `init_process_group`, before the first step. A hang "
            "later has other causes."
        ),
        severity=Severity.HIGH,
        specialist=DISTRIBUTED,
        remedies=(
            Remedy(
                change=(
                    "Launch with torchrun and the same rendezvous on each node: `torchrun "
                    "--nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=host0:29500 "
                    "--rdzv-id=job1 train.py`"
                ),
                expected_effect="`init_process_group` returns on all ranks within seconds",
                verify="a script with only `init_process_group` and `dist.barrier()` passes",
                if_it_fails="if it hangs, run `nc -vz host0 29500` from a second node",
            ),
            Remedy(
                change=(
                    "Choose the interface: `NCCL_SOCKET_IFNAME=eth0` and "
                    '`GLOO_SOCKET_IFNAME=eth0`; for "address already in use" another port, or '
                    "`--standalone` on one node"
                ),
                expected_effect="NCCL's log shows the intended address",
                verify="`NCCL_DEBUG=INFO` prints the chosen interface",
                if_it_fails=(
                    "if it connects and stalls, suspect containers with separate networks and use "
                    "the host network"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "send the launch command of each node and the first lines of each rank with "
                "`NCCL_DEBUG=INFO` and `TORCH_CPP_LOG_LEVEL=INFO`"
            ),
        ),
    ),
)

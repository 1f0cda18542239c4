"""Causes outside of the program."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import CHECKPOINTS, DEBUGGING, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="killed-by-host",
        title="The process was killed from outside{signal_fact}",
        what=(
            "The log stops in the middle, without a traceback: the kernel's out-of-memory killer "
            "or a container's limit (signal 9, exit code 137), a scheduler's time limit, "
            "pre-emption or a shutdown (signal 15, exit code 143). The program did nothing wrong "
            "at that line. If the resident memory climbed before, `host-memory-growth` is the "
            "cause."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Out of memory: ask for more, or need less (reduce {workers_cut}, "
                    "memory-mapped data)"
                ),
                expected_effect="MaxRSS stays below the limit for the whole run",
                verify="log resident memory per epoch",
                if_it_fails=(
                    "if memory is flat and it is still killed, suspect a time limit or pre-emption"
                ),
            ),
            Remedy(
                change=(
                    "Time limit or pre-emption: save on the signal (`signal.signal(signal.SIGTERM, "
                    "...)`, Slurm `--signal=B:TERM@120`) and resume by itself"
                ),
                expected_effect="a kill costs minutes, not the run",
                verify="send SIGTERM to a short run: a checkpoint appears, and it resumes",
                if_it_fails="if signal 9 comes without warning, save at intervals",
            ),
        ),
        confirm_by=(
            Ask(
                'send the exit code, and `dmesg -T | grep -i -E "oom|killed"` or the scheduler\'s '
                "record (`sacct -j ID --format=State,ExitCode,MaxRSS`)"
            ),
        ),
        brings_about=("corrupt-checkpoint", "rank-failed-first", "worker-crash"),
        defaults={
            "signal_fact": "",
            "workers_cut": "the number of workers by half",
        },
        tailor=facts.all_of(facts.workers, facts.signal),
    ),
    Cause(
        name="disk-full",
        title="A write failed for lack of space",
        what=(
            '"No space left on device" or "Disk quota exceeded" while a checkpoint, log or '
            "cache is written. Quotas and inodes run out while `df -h` still shows room; if the "
            "message comes from a worker and disks are empty, it is /dev/shm "
            "(`shared-memory-exhausted`). The file being written is damaged."
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Keep the last few checkpoints and the best (`save_total_limit=3`, "
                    "`save_top_k=2`), and delete the damaged one"
                ),
                expected_effect="disk use is flat over the run",
                verify="checkpoints × size is below the free space at the start",
                if_it_fails=(
                    "if space is used elsewhere, look with `du -xh --max-depth=2 | sort -h | tail`"
                ),
            ),
            Remedy(
                change=(
                    "Move caches and temporary files: `TMPDIR`, `HF_HOME`, `TORCH_HOME`, "
                    "`XDG_CACHE_HOME` on the large disk"
                ),
                expected_effect="the small disk no longer fills",
                verify="`df -h` during the first epoch",
                if_it_fails="if inodes are gone, there are too many small files, pack them",
            ),
        ),
        confirm_by=(Ask("send `df -h`, `df -i` and `quota -s` for the path in the message"),),
        brings_about=("corrupt-checkpoint", "rank-failed-first"),
    ),
    Cause(
        name="version-mismatch",
        title="Driver, CUDA, torch or a library do not fit each other{error_fact}",
        what=(
            "Pieces that were built for each other were mixed: a CUDA build newer than the driver, "
            'extensions compiled against another torch ("undefined symbol"), a device the build '
            'has no kernels for ("no kernel image is available"), numpy 2 under modules built '
            "for 1, a library API that moved. It fails at import or at the first CUDA call, before "
            "any training. A call that fails in your own code with one library version only is of "
            "this kind too."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Install a matching set into a fresh environment: the torch build for the "
                    "driver's CUDA (`nvidia-smi` shows the highest it supports), then extensions "
                    "built against that torch"
                ),
                expected_effect='`python -c "import torch; torch.zeros(1).cuda()"` passes',
                verify="`torch.version.cuda`, `torch.cuda.get_arch_list()` and the driver fit",
                if_it_fails=(
                    "if it passes alone and fails in the program, another package pulled another "
                    "version; run `pip check`"
                ),
            ),
            Remedy(
                change=(
                    "Pin what works: write a constraints file from the good environment, and use "
                    "it for each install"
                ),
                expected_effect="a fresh environment behaves alike",
                verify="build it twice and compare `pip freeze`",
                if_it_fails=(
                    "if the machine differs, suspect the driver or the device and record "
                    "`nvidia-smi`"
                ),
            ),
        ),
        confirm_by=(Ask("send the output of `python -m torch.utils.collect_env`"),),
        brings_about=(
            "api-misuse",
            "rank-failed-first",
            "rendezvous-failure",
            "state-dict-key-mismatch",
        ),
        defaults={
            "error_fact": "",
        },
        tailor=facts.error,
    ),
)

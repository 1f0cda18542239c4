"""Reruns: on fresh copies, within limits, with everything ended that came of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from reruns import STEPS, prints, rerun_once

from traindx.api import open_run
from traindx.errors import CannotRerun, PatchFailed
from traindx.experiments.changes import AS_IT_IS, Change, Limits
from traindx.experiments.sandbox import attempt, commands, rerun_environment
from traindx.experiments.sandbox.workshop import Workshop
from traindx.experiments.verification.hindrances import why_not

TRAIN = (
    STEPS
    + """
import os, sys
print("resumed" if os.path.exists("ckpt.pt") else "fresh", sys.argv[1:], os.getcwd())
torch.save(model.state_dict(), "ckpt.pt")
steps(400)
"""
)
PATCH = """--- a/train.py
+++ b/train.py
@@ -5 +5 @@
-optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
+optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
"""


def test_each_rerun_has_a_fresh_copy_and_a_recording(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    before = prints(tmp_path)
    command = [sys.executable, "train.py", f"--out={tmp_path}/out"]
    with Workshop(command, tmp_path, os.environ) as workshop:
        limits = Limits(120, 20)
        reruns = [workshop.rerun(c, 0, limits) for c in (AS_IT_IS, Change(patch=PATCH))]
        runs = [open_run(str(r.folder)) for r in reruns]
        outputs = [(r.folder / "output.log").read_text() for r in reruns]
        with pytest.raises(PatchFailed):
            workshop.rerun(Change(patch=PATCH.replace("lr=0.1", "lr=7")), 0, limits)
        place = reruns[0].folder
    assert not place.exists()
    assert prints(tmp_path) == before
    for rerun, run, output in zip(reruns, runs, outputs, strict=True):
        assert (rerun.exit_code, rerun.stopped) == (0, "steps"), output
        assert rerun.first_step_s is not None and 0 < rerun.first_step_s < rerun.duration_s
        assert rerun.applied["stop"] == 1
        assert output == f"fresh ['--out={tmp_path}/out'] {tmp_path}\n"
        assert [s.path for s in run.sources] == [str(tmp_path / "train.py")]
    first, second = (run.main_loss() for run in runs)
    assert first is not None and second is not None
    assert first.values[0] == second.values[0] and first.values[1] != second.values[1]
    assert 15 <= len(first) <= 21


LINGERING = """
import os, signal, subprocess, sys, time
own = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
child = subprocess.Popen([sys.executable, "-c", own], start_new_session=True)
print(child.pid, flush=True)
{then}
"""


@pytest.mark.parametrize("then", ["time.sleep(1000)", "os._exit(3)"])
def test_nothing_is_left_behind(then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "GRACE_S", 0.5)
    (tmp_path / "train.py").write_text(LINGERING.format(then=then))
    rerun, output = rerun_once(tmp_path, "train.py", time_s=2.0)
    pid = int(output.split()[0])
    assert not _is_alive(pid)
    is_hanging = "sleep" in then
    assert rerun.stopped == ("time" if is_hanging else "")
    assert rerun.exit_code == (None if is_hanging else 3)
    assert rerun.first_step_s is None
    told = str(why_not(rerun))
    assert ("passed before the first step" if is_hanging else "exit code 3") in told


def test_an_interrupt_ends_the_rerun_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(1000)\n")
    started = []

    def interrupt(self: attempt.Attempt, deadline: float) -> None:
        assert self._process is not None
        started.append(self._process.pid)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(attempt.Attempt, "_accompany", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rerun_once(tmp_path, "train.py")
    assert not _is_alive(started[0])


def _is_alive(pid: int) -> bool:
    for _ in range(100):
        try:
            about = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        if about.rpartition(")")[2].split()[0] == "Z":
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("input('name? ')", "asks for input on the terminal"),
        ("open('data/none.csv')", "data that it reads is not there"),
        ("import no_such_module", "a module is missing: No module named 'no_such_module'"),
        ("import os; os.environ['SLURM_PROCID']", "cluster is missing: SLURM_PROCID"),
        ("raise OSError(98, 'Address already in use')", "a port that it needs is in use"),
        ("raise ValueError('no')", "failed before the first step: ValueError: no"),
        ("pass", "ended without a training step"),
    ],
)
def test_what_cannot_be_rerun_is_recognised(program: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program)
    with Workshop([sys.executable, "train.py"], tmp_path, os.environ) as workshop:
        rerun = workshop.rerun(AS_IT_IS, 0, Limits(60))
        assert told in str(why_not(rerun))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ([], "no command"),
        (["sbatch", "job.sh"], "elsewhere"),
        (["python", "-I", "train.py"], "with -I"),
        (["python3.11", "-uE", "train.py"], "with -E"),
        (["python"], "asks for input"),
        (["python", "-"], "standard input"),
        (["python", "gone.py"], "no such file"),
        (["torchrun", "--nnodes=2", "train.py"], "2 machines"),
    ],
)
def test_a_command_that_cannot_be_rerun_is_refused(
    command: list[str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(CannotRerun, match=why):
        commands.refuse(command, tmp_path)


def test_a_plain_command_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    for command in (
        ["python", "-u", "-W", "error", "train.py"],
        ["python", "-m", "package.train"],
        ["torchrun", "--nnodes", "1", "train.py"],
        ["bash", "train.sh"],
        ["python", "-Xdev", "-c", "pass"],
    ):
        commands.refuse(command, tmp_path)


def test_an_interpreter_without_the_guard_runs_nothing(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    fake.chmod(0o755)
    (tmp_path / "train.py").write_text(f"open({str(tmp_path / 'written')!r}, 'w')\n")
    with pytest.raises(CannotRerun, match="does not load the guard"):
        rerun_once(tmp_path, "train.py", python=str(fake))
    assert not (tmp_path / "written").exists()


def test_a_shell_script_works_on_the_copy(tmp_path: Path) -> None:
    python = sys.executable
    (tmp_path / "train.sh").write_text(f"cd {tmp_path}\necho x > made.txt\n{python} train.py\n")
    (tmp_path / "train.py").write_text(
        "import json, os\nprint(json.dumps(dict(os.environ)))\nprint(os.path.exists('made.txt'))\n"
    )
    environ = {**os.environ, "DATA": f"{tmp_path}/data", "MASTER_PORT": "29500", "WANDB_MODE": "x"}
    with Workshop(["bash", "train.sh"], tmp_path, environ) as workshop:
        assert any("run by a shell" in w for w in workshop.warnings)
        rerun = workshop.rerun(AS_IT_IS, 3, Limits(60))
        output = (rerun.folder / "output.log").read_text()
    assert not (tmp_path / "made.txt").exists()
    assert output.endswith("True\n")
    for told in ('"WANDB_MODE": "disabled"', '"PYTHONHASHSEED": "3"', f'"DATA": "{tmp_path}/data"'):
        assert told in output  # the copy goes by the name of the original
    assert '"MASTER_PORT": "29500"' not in output


def test_no_cache_makes_the_project_writable(tmp_path: Path) -> None:
    sandbox = rerun_environment.Sandbox(tmp_path / "1", tmp_path / "caches")
    environ = {
        "HOME": "/home/u",
        "XDG_CACHE_HOME": "/data",
        "HF_HOME": "/models",
        "TORCH_HOME": "/",
    }
    root = Path("/data/project")
    values = rerun_environment.guard_values(environ, sandbox, tmp_path / "recording", [root])
    allowed = values["allowed"].split(os.pathsep)
    assert {"/models", "/dev", "/home/u/.cache", str(tmp_path / "1")} <= set(allowed)
    assert not {"/data", "/", "/home/u"} & set(allowed)


def test_the_copy_is_made_outside_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "train.py").write_text("open('made.txt', 'w')\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    rerun, _ = rerun_once(tmp_path, "train.py")
    assert rerun.exit_code == 0
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["tmp", "train.py"]


def test_ports_on_this_machine_are_free_ones() -> None:
    words = ["torchrun", "--master_port", "29500", "--rdzv-endpoint=localhost:1", "--port=2"]
    made = rerun_environment.with_free_ports(words)
    assert made[2] != "29500" and made[2].isdigit()
    assert made[3].startswith("--rdzv-endpoint=localhost:") and made[3] != words[3]
    assert made[4] == "--port=2"
    remote = ["torchrun", "--rdzv_endpoint=node1:29400"]
    assert rerun_environment.with_free_ports(remote) == remote

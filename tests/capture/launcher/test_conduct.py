"""A command below traindx behaves as if it were alone, and its end is told rightly."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DRIVER = str(Path(__file__).with_name("driver.py"))
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PATIENCE_S = 30


def arguments(folder: Path, *command: str) -> list[str]:
    return [sys.executable, DRIVER, str(folder), *command]


def ride(
    folder: Path, *command: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        arguments(folder, *command),
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=env,
    )


def python(code: str) -> tuple[str, str, str]:
    return sys.executable, "-c", code


def about(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def start(folder: Path, *command: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a ride whose command prints `ready` when it is."""
    process = subprocess.Popen(
        arguments(folder, *command),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def ends(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


# output and input


def test_output_passes_through_and_is_kept(tmp_path: Path) -> None:
    code = "import sys; print('to out'); print('to err', file=sys.stderr)"
    done = ride(tmp_path, *python(code))
    assert done.stdout == b"to out\n"
    assert b"to err\n" in done.stderr
    kept = (tmp_path / "output.log").read_bytes()
    assert sorted(kept.splitlines()) == [b"to err", b"to out"]


def test_binary_output_is_unchanged(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100 + b'\\r\\n\\xff')"
    done = ride(tmp_path, *python(code))
    assert done.stdout == bytes(range(256)) * 100 + b"\r\n\xff"
    assert (tmp_path / "output.log").read_bytes() == done.stdout


def test_one_file_for_both_streams_keeps_their_order(tmp_path: Path) -> None:
    code = "import os\nfor i in range(200): os.write(1 + i % 2, b'%d\\n' % i)"
    done = subprocess.run(
        arguments(tmp_path, *python(code)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=True,
    )
    numbers = [line for line in done.stdout.splitlines() if line.isdigit()]
    assert numbers == [b"%d" % i for i in range(200)]


def test_a_hundred_megabytes_come_through(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(100): sys.stdout.buffer.write(b'x' * 1048575 + b'\\n')"
    done = ride(tmp_path, *python(code))
    assert len(done.stdout) == 100 << 20 and done.returncode == 0
    kept = sorted(p.name for p in tmp_path.glob("output*.log"))
    assert kept == ["output.2.log", "output.log"]
    assert sum((tmp_path / name).stat().st_size for name in kept) == 100 << 20


def test_a_command_that_prints_nothing(tmp_path: Path) -> None:
    done = ride(tmp_path, *python("pass"))
    assert done.stdout == b"" and done.returncode == 0
    assert about(tmp_path)["exit_code"] == 0
    assert done.stderr.count(b"\n") == 1  # where it records


def test_standard_input_is_the_command_s(tmp_path: Path) -> None:
    done = ride(tmp_path, *python("print(input())"), stdin=b"5\n")
    assert done.stdout == b"5\n"


def test_a_shell_with_pipes(tmp_path: Path) -> None:
    done = ride(tmp_path, "bash", "-c", "seq 1000 | tail -n 2 | tac; exit 7")
    assert done.stdout == b"1000\n999\n" and done.returncode == 7


def test_a_reader_that_goes_away_ends_the_command_as_it_would_alone(tmp_path: Path) -> None:
    line = " ".join(["exec", *map(repr, arguments(tmp_path, "yes")), "2>/dev/null"])
    done = subprocess.run(
        ["bash", "-c", f"({line}) | head -n 1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.split() == [b"y", b"141"]
    assert about(tmp_path)["signal"] == signal.SIGPIPE


def test_a_process_that_is_left_behind_does_not_keep_us(tmp_path: Path) -> None:
    done = ride(tmp_path, "bash", "-c", "sleep 600 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0
    assert b"left behind" in done.stderr


@pytest.mark.parametrize("stream", ["0<&-", "1>&-", "2>&-"])
def test_a_closed_stream_is_closed_for_the_command(tmp_path: Path, stream: str) -> None:
    code = f"import os\ntry: os.fstat({stream[0]})\nexcept OSError: os._exit(9)"
    line = " ".join(map(shlex.quote, arguments(tmp_path, *python(code))))
    done = subprocess.run(
        ["bash", "-c", f"{line} {stream}"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 9
    assert b"lost" not in done.stderr and b"Traceback" not in done.stderr


# environment


def test_the_environment_is_the_user_s_plus_the_recorder_s(tmp_path: Path) -> None:
    code = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    given = {**os.environ, "PYTHONPATH": "/some/where", "MINE": "1"}
    done = ride(tmp_path, *python(code), env=given)
    cwd, environ = json.loads(done.stdout)
    assert cwd == str(Path.cwd())
    added = {k: v for k, v in environ.items() if given.get(k) != v}
    own, rest = added.pop("PYTHONPATH").split(os.pathsep)
    assert Path(own).parts[-2:] == ("recorder", "injected") and rest == "/some/where"
    assert added.pop("TRAINDX_RECORDING") == str(tmp_path)
    assert added.pop("TRAINDX_OVERHEAD") == "0.02"
    assert set(added) <= {"LC_CTYPE", "SHLVL", "_"}


def test_other_open_files_are_inherited(tmp_path: Path) -> None:
    outlet, inlet = os.pipe()
    try:
        done = subprocess.run(
            arguments(tmp_path, "bash", "-c", f"echo hello >&{inlet}"),
            pass_fds=[inlet],
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0
        assert os.read(outlet, 100) == b"hello\n"
    finally:
        os.close(outlet)
        os.close(inlet)


@LINUX_ONLY
def test_signals_are_neither_blocked_nor_ignored_for_the_command(tmp_path: Path) -> None:
    question = ["grep", "-hE", "Sig(Blk|Ign)", "/proc/self/status"]
    alone = subprocess.run(question, capture_output=True, check=True).stdout.split()
    below = ride(tmp_path, *question).stdout.split()
    of_the_c_library = 1 << 31 | 1 << 32  # which it sets up again when it needs them
    assert below[1] == alone[1]
    assert int(below[3], 16) & ~of_the_c_library == int(alone[3], 16) & ~of_the_c_library


# exit codes


def test_the_exit_code_is_the_command_s(tmp_path: Path) -> None:
    done = ride(tmp_path, *python("import sys; sys.exit(3)"))
    assert done.returncode == 3
    assert b"ended with exit code 3" in done.stderr


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    done = ride(tmp_path / "made", "no-such-command-here")
    assert done.returncode == 127
    assert done.stderr == b"traindx: no-such-command-here: command not found\n"
    assert not (tmp_path / "made").exists()


def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo no\n")
    done = ride(tmp_path / "made", str(script))
    assert done.returncode == 126 and b"not executable" in done.stderr


def test_a_script_without_a_first_line_runs_in_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "from $1"\n')
    script.chmod(0o755)
    done = ride(tmp_path / "made", str(script), "here")
    assert (done.returncode, done.stdout) == (0, b"from here\n")


def test_an_exception_in_a_thread_is_not_the_end(tmp_path: Path) -> None:
    code = "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()"
    done = ride(tmp_path, *python(code))
    assert done.returncode == 0 and b"ZeroDivisionError" in done.stderr
    assert b"ZeroDivisionError" in (tmp_path / "output.log").read_bytes()


def test_a_segmentation_fault(tmp_path: Path) -> None:
    code = (
        "import ctypes, faulthandler, os\n"
        "f = open(os.environ['TRAINDX_RECORDING'] + f'/{os.getpid()}.stack', 'w')\n"
        "faulthandler.enable(f)\n"
        "def reach_for_nothing():\n    ctypes.string_at(0)\n"
        "reach_for_nothing()"
    )
    done = ride(tmp_path, *python(code))
    assert done.returncode == 128 + signal.SIGSEGV
    assert b"crashed with SIGSEGV (segmentation fault)" in done.stderr
    assert b"in <string> line 5, in reach_for_nothing: Segmentation fault" in done.stderr
    assert about(tmp_path)["signal"] == signal.SIGSEGV and about(tmp_path)["exit_code"] is None


def test_a_crash_below_a_shell(tmp_path: Path) -> None:
    done = ride(tmp_path, "bash", "-c", "sh -c 'kill -SEGV $$'; exit $?")
    assert done.returncode == 128 + signal.SIGSEGV
    assert b"exit code 139 after" in done.stderr and b"stands for SIGSEGV" in done.stderr


def test_killed_by_someone(tmp_path: Path) -> None:
    process = start(tmp_path, *python("import time; print('ready', flush=True); time.sleep(99)"))
    os.kill(about(tmp_path)["pid"], signal.SIGKILL)
    code, _, err = ends(process)
    assert code == 128 + signal.SIGKILL
    assert b"killed by SIGKILL" in err and b"out-of-memory killer" in err
    assert (about(tmp_path)["signal"], about(tmp_path)["is_running"]) == (signal.SIGKILL, False)


# signals

TELLS = """
import os, signal, time
def tell(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGUSR2:
        os._exit(0)
for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT"):
    signal.signal(getattr(signal, name), tell)
print("ready", flush=True)
while True:
    time.sleep(1)
"""
SENT = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR2,
)


def send_and_listen(process: subprocess.Popen[bytes], send: Callable[[int], None]) -> None:
    """Send one signal after the other; each is to arrive, and none for a second time."""
    assert process.stdout is not None
    for number in SENT:
        send(number)
        assert process.stdout.readline().decode() == f"{number.name}\n"
    code, out, _ = ends(process)
    assert (code, out) == (0, b"")


def test_signals_to_traindx_alone_are_passed_on_once(tmp_path: Path) -> None:
    process = start(tmp_path, *python(TELLS))
    send_and_listen(process, process.send_signal)


def test_signals_to_the_group_are_not_repeated(tmp_path: Path) -> None:
    process = start(tmp_path, *python(TELLS))

    def send(number: int) -> None:
        os.killpg(process.pid, number)
        time.sleep(0.3)  # for a second one to come, if there is one

    send_and_listen(process, send)


@LINUX_ONLY
def test_a_hang_that_is_ended_through_traindx(tmp_path: Path) -> None:
    code = """
import faulthandler, os, signal, threading
folder, pid = os.environ["TRAINDX_RECORDING"], os.getpid()
faulthandler.register(signal.SIGRTMIN + 7, open(f"{folder}/{pid}.stack", "w"), all_threads=True)
with open(f"{folder}/rank0-{pid}.jsonl", "w") as records:
    print('{"k":"stall","step":12,"waited_s":70.0,"stacks":[["MainThread",'
          '[{"file":"a.py","line":4}]]],"is_over":false}', file=records)
def wait_for_ever():
    print("ready", flush=True)
    threading.Event().wait()
wait_for_ever()
"""
    process = start(tmp_path, *python(code))
    process.send_signal(signal.SIGTERM)
    code_, _, err = ends(process)
    assert code_ == 128 + signal.SIGTERM
    assert b"ended by SIGTERM" in err and b"sent to traindx and passed on" in err
    assert b"rank 0 stood still at step 12 for at least 70 s, in a.py line 4" in err
    if sys.platform == "linux":
        (stack,) = tmp_path.glob("*.stack")
        assert "in wait_for_ever" in stack.read_text()


def test_a_process_that_does_not_listen_is_not_asked_for_its_stack(tmp_path: Path) -> None:
    code = """
import os, signal, time
open(f"{os.environ['TRAINDX_RECORDING']}/rank0-{os.getpid()}.jsonl", "w").write("{}\\n")
signal.signal(signal.SIGTERM, lambda *_: (print("in good order", flush=True), os._exit(5)))
print("ready", flush=True)
time.sleep(99)
"""
    process = start(tmp_path, *python(code))
    process.send_signal(signal.SIGTERM)
    code_, out, _ = ends(process)
    assert (code_, out) == (5, b"in good order\n")


def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    script = "echo ready; kill -HUP $PPID; sleep 0.5; echo survived"
    done = subprocess.run(
        ["nohup", *arguments(tmp_path, "bash", "-c", script)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"ready\nsurvived\n")


# a recording that cannot be


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = ride(tmp_path / "taken", *python("print('fine')"), env=env)
    assert (done.returncode, done.stdout) == (0, b"fine\n")
    assert b"cannot record in" in done.stderr
    (spare,) = tmp_path.glob("traindx-run-*")
    assert (spare / "output.log").read_bytes() == b"fine\n"


def test_a_full_disk_is_not_felt_by_the_command(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(b'x' * (1 << 20)); sys.exit(4)"
    little = ["bash", "-c", 'ulimit -f 64; exec "$@"', "bash"]
    done = subprocess.run(
        [*little, *arguments(tmp_path, *python(code))],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, len(done.stdout)) == (4, 1 << 20)
    assert done.stderr.count(b"no longer recorded") == 1
    assert (tmp_path / "output.log").stat().st_size == 64 << 10
    assert about(tmp_path)["exit_code"] == 4


def test_a_folder_that_vanishes(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    done = ride(folder, "bash", "-c", f"rm -rf '{folder}'; echo still; exit 6")
    assert (done.returncode, done.stdout) == (6, b"still\n")

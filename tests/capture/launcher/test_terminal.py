"""On a real terminal: the command finds one too, and what the keyboard sends reaches it once."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DRIVER = str(Path(__file__).with_name("driver.py"))
PATIENCE_S = 30


class Screen:
    """A terminal with a ride in its foreground."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master = master
        self.process = process
        self.shown = b""

    def read_until(self, text: bytes) -> bytes:
        """Read what appears until a text has appeared."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()
        return self.shown

    def end(self) -> tuple[int, bytes]:
        """Read until the end and return the exit code and everything that appeared."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S), self.shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if not ready:
            return self.process.poll() is None
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.shown += data
        return bool(data)


@contextmanager
def screen(
    folder: Path, code: str, size: tuple[int, int] = (40, 123), redirect: str = ""
) -> Iterator[Screen]:
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    process = subprocess.Popen(
        [sys.executable, DRIVER, str(folder), sys.executable, "-c", code],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.DEVNULL if redirect else slave,
        start_new_session=True,
        env={**os.environ, "TAKE_TERMINAL": "1"},
    )
    os.close(slave)
    try:
        yield Screen(master, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


def test_the_command_has_a_terminal_of_the_same_size(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "print([f.isatty() for f in (sys.stdin, sys.stdout, sys.stderr)])\n"
        "print(tuple(os.get_terminal_size(1)), tuple(os.get_terminal_size(2)))"
    )
    with screen(tmp_path, code) as opened:
        code_, shown = opened.end()
    assert code_ == 0
    assert shown.endswith(b"[True, True, True]\r\n(123, 40) (123, 40)\r\n")
    kept = (tmp_path / "output.log").read_bytes()
    assert kept == b"[True, True, True]\n(123, 40) (123, 40)\n"


def test_only_what_is_a_terminal_is_one(tmp_path: Path) -> None:
    code = "import sys; print([f.isatty() for f in (sys.stdout, sys.stderr)])"
    with screen(tmp_path, code, redirect="stderr") as opened:
        _, shown = opened.end()
    assert shown == b"[True, False]\r\n"


def test_the_terminal_s_new_size_is_followed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time\n"
        "print('ready', flush=True)\n"
        "while os.get_terminal_size().columns != 77: time.sleep(0.01)\n"
        "print('followed')"
    )
    with screen(tmp_path, code) as opened:
        opened.read_until(b"ready")
        fcntl.ioctl(opened.master, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 77, 0, 0))
        code_, shown = opened.end()
    assert code_ == 0 and b"followed" in shown


INTERRUPTIBLE = """
import time
try:
    print("ready", flush=True)
    time.sleep(99)
except KeyboardInterrupt:
    print("caught it", flush=True)
    time.sleep(1)
    raise
"""


def test_control_c_reaches_the_command_once(tmp_path: Path) -> None:
    with screen(tmp_path, INTERRUPTIBLE) as opened:
        opened.read_until(b"ready")
        os.write(opened.master, b"\x03")
        code, shown = opened.end()
    assert code == 128 + signal.SIGINT
    assert shown.count(b"caught it") == 1
    assert shown.count(b"KeyboardInterrupt") == 1
    assert b"interrupted (SIGINT)" in shown


def test_an_interrupt_of_traindx_alone_reaches_the_command(tmp_path: Path) -> None:
    with screen(tmp_path, INTERRUPTIBLE) as opened:
        opened.read_until(b"ready")
        opened.process.send_signal(signal.SIGINT)
        code, shown = opened.end()
    assert code == 128 + signal.SIGINT
    assert shown.count(b"KeyboardInterrupt") == 1


def test_keys_reach_the_command(tmp_path: Path) -> None:
    with screen(tmp_path, "print('got', input('name? '))") as opened:
        opened.read_until(b"name? ")
        os.write(opened.master, b"ada\n")
        code, shown = opened.end()
    assert code == 0 and b"got ada\r\n" in shown


def test_escape_sequences_stay_as_they_are(tmp_path: Path) -> None:
    code = r"print('\x1b[31mred\x1b[0m 10%\r20%\r\n', end='')"
    with screen(tmp_path, code) as opened:
        opened.end()
    assert (tmp_path / "output.log").read_bytes() == b"\x1b[31mred\x1b[0m 10%\r20%\r\n"


def test_a_message_does_not_land_in_a_line_of_the_command(tmp_path: Path) -> None:
    code = "import sys; print('half a line', end='', flush=True); sys.exit(2)"
    with screen(tmp_path, code) as opened:
        _, shown = opened.end()
    assert b"half a line\r\ntraindx: the command ended with exit code 2" in shown

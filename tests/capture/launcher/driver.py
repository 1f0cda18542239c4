"""Runs `ride` alone, without the diagnosis, so that the tests of its conduct are quick."""

from __future__ import annotations

import fcntl
import os
import sys
import termios

from traindx.capture.launcher.ending import describe
from traindx.capture.launcher.supervisor import Trip, ride
from traindx.capture.launcher.voice import Voice
from traindx.errors import NotStarted


def main() -> int:
    if os.environ.pop("TAKE_TERMINAL", ""):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    output, *command = sys.argv[1:]
    voice = Voice()
    try:
        outcome = ride(Trip(tuple(command), output), voice)
    except NotStarted as error:
        voice.say(error.why)
        return error.exit_code
    for sentence in describe(outcome.end, outcome.folder, outcome.stalled):
        voice.say(sentence)
    return outcome.end.shell_code


if __name__ == "__main__":
    sys.exit(main())

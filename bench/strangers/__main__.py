"""How many programs of strangers `traindx check` names the cause of, from source alone.

    python -m bench.strangers [SET …]

| set | written by | used |
|---|---|---|
| `developed` | six hands | read while rules were ported onto the program model |
| `judged` | the same | held back and judged once; its misses were read and mended afterwards |
| `read` | four other hands, asked for no textbook forms | read while the model was taught more |
| `unread` | the same four | held back until 26 of 60, read since |
| `taught` | five others, given a cause and a user, not a form | read while the model was taught more |
| `waiting` | the same five | held back until 41 of 74, read since |
| `studied` | five others, two programs a cause by different mechanisms | read while the model was taught more |
| `sealed` | the same five | held back |
| `unopened` | a seventh, for distributed training, fine-tuning and RL | held back |

None of the writers had seen rules or operators.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from traindx.api import check_run

HOME = Path(__file__).parent
SETS = ("developed", "judged", "read", "unread", "taught", "waiting", "studied", "sealed", "unopened")


def main() -> int:
    """Print one line per set."""
    for name in sys.argv[1:] or SETS:
        right = faulty = sound = alarms = 0
        for label in sorted((HOME / name).rglob("label.json")):
            said = json.loads(label.read_text(encoding="utf-8"))
            causes = [h.cause for h in check_run(str(label.parent))[1].root_causes]
            if said["cause"] is None:
                sound += 1
                alarms += bool(causes)
            else:
                faulty += 1
                accepted = {said["cause"], *said.get("accepted", ())}
                right += bool(causes) and causes[0] in accepted
        print(f"{name}: first cause right {right}/{faulty}, false alarms {alarms}/{sound}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

import json
import random
from pathlib import Path

TEAMS = ["billing", "network", "hardware", "account", "sales", "legal"]
_WORDS = {t: [f"{t[:3]}{i}" for i in range(30)] for t in TEAMS}
_COMMON = [f"w{i}" for i in range(60)]


def vocabulary():
    return {w: i for i, w in enumerate(_COMMON + [w for t in TEAMS for w in _WORDS[t]])}


def ticket(team, rnd):
    other = rnd.choice(TEAMS)
    words = rnd.choices(_COMMON, k=6) + rnd.choices(_WORDS[team], k=2) + rnd.choices(_WORDS[other], k=1)
    rnd.shuffle(words)
    return {"text": " ".join(words), "team": team}


def export_shards(folder, months, per_shard, seed):
    """The ticket system exports one jsonl per month; the mix of teams drifts over the year."""
    rnd = random.Random(seed)
    for month in months:
        weights = [6 if k == month else 1 for k in range(len(TEAMS))]
        rows = [ticket(rnd.choices(TEAMS, weights)[0], rnd) for _ in range(per_shard)]
        Path(folder, f"{month:02d}.jsonl").write_text("\n".join(map(json.dumps, rows)))


def read_shards(folder):
    tickets, rows = [], []
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row["text"]:
                rows.append(row)
        tickets.extend(rows)
    return tickets

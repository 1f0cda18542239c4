import numpy as np
import torch

AA = "ACDEFGHIKLMNPQRSTVWY"


def simulate(n, seed):
    """Binding strength: fraction of charged residues that have a hydrophobic neighbour."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        s = "".join(rng.choice(list(AA), rng.integers(6, 50)))
        charged = [i for i, c in enumerate(s) if c in "DEKR"]
        near = [any(0 <= j < len(s) and s[j] in "AILMFVW" for j in (i - 1, i + 1)) for i in charged]
        frac = sum(c in "DEKR" for c in s) / len(s)
        out.append((s, 2 * frac + 0.5 * (np.mean(near) if near else 0.0)))
    return out


def collate(rows):
    width = max(len(s) for s, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for r, (s, _) in zip(ids, rows):
        r[: len(s)] = torch.tensor([AA.index(c) + 1 for c in s])
    return ids, ids != 0, torch.tensor([y for _, y in rows], dtype=torch.float32)

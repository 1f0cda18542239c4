import hashlib
import json
import os

import numpy as np


def cache_key(settings):
    relevant = {k: v for k, v in vars(settings).items() if k not in ("epochs", "lr")}
    text = json.dumps(relevant, sort_keys=True, default=lambda o: type(o).__name__)
    return hashlib.md5(text.encode()).hexdigest()[:12]


def synthesize(settings):
    rng = np.random.default_rng(settings.seed)
    species = rng.integers(0, 4, settings.n_clips)
    t = np.arange(2048) / 4096
    f0 = 300 + 110 * species[:, None] + 45 * rng.standard_normal((settings.n_clips, 1))
    chirp = np.sin(2 * np.pi * (f0 * t + 60 * species[:, None] * t**2))
    return chirp + 1.5 * rng.standard_normal(chirp.shape), species


def compute(settings):
    sp = settings.spectrum
    waves, species = synthesize(settings)
    frames = waves.reshape(len(waves), -1, sp.frame) * np.hanning(sp.frame)
    power = (np.abs(np.fft.rfft(frames, axis=-1)) ** 2).mean(1)
    db = np.maximum(10 * np.log10(power + 1e-9), sp.floor_db)
    low = db[:, : sp.keep_low]
    feats = np.zeros((len(db), 128), dtype=np.float32)
    feats[:, : low.shape[1]] = low / 20
    return feats, species


def load(settings, folder="cache"):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, cache_key(settings) + ".npz")
    if not os.path.exists(path):
        feats, species = compute(settings)
        np.savez(path, feats=feats, species=species)
    with np.load(path) as z:
        return z["feats"], z["species"]

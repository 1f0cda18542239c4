import copy

import yaml

BASE = """
seed: 1
data:
  window: 32
  batch_size: 64
model:
  hidden: 48
  code: 4
optim:
  name: adam
  lr: 0.0001
  weight_decay: 0.0
epochs: 8
"""

EXPERIMENT = """
# bigger steps and a wider bottleneck for the pump sensors
data:
  batch_size: 32
model:
  code: 8
optim:
  lr: 0.002
epochs: 6
"""


def deep_merge(base, extra):
    """Return base updated with extra, sections are merged key by key."""
    merged = copy.deepcopy(base)
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = deep_merge(value, merged[key])
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def load(*texts):
    cfg = {}
    for text in texts:
        cfg = deep_merge(cfg, yaml.safe_load(text))
    return cfg

"""Objectives for the day-ahead load models. All take (output, target)."""
import torch
import torch.nn.functional as F
from torch.distributions import Normal, StudentT


def _split(output):
    loc, raw = output.chunk(2, dim=-1)
    return loc, F.softplus(raw) + 1e-2


def mse(output, target):
    return F.mse_loss(_split(output)[0], target)


def gaussian(output, target):
    loc, scale = _split(output)
    return Normal(loc, scale).log_prob(target).mean()


def student(output, target):
    loc, scale = _split(output)
    return -StudentT(4.0, loc, scale).log_prob(target).mean()


OBJECTIVES = {f.__name__: f for f in (mse, gaussian, student)}

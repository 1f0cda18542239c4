import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector


def broadcast_weights(model, src=0):
    """One flat broadcast instead of one message per tensor."""
    flat = parameters_to_vector(model.parameters()).detach()
    dist.broadcast(flat, src=src)
    return model


def mean_gradients(model):
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    offset = 0
    for g in grads:
        g.copy_(flat[offset:offset + g.numel()].view_as(g))
        offset += g.numel()

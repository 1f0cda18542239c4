"""Evolution strategy with mirrored sampling. The objective is a black box, so the search direction is
estimated from fitness ranks and handed to a torch optimizer as if it were a gradient."""
import torch
from torch.func import functional_call, vmap
from torch.nn.utils import parameters_to_vector


def unflatten(vector, like):
    out, at = {}, 0
    for name, p in like.items():
        out[name] = vector[..., at:at + p.numel()].reshape(*vector.shape[:-1], *p.shape)
        at += p.numel()
    return out


def centered_ranks(f):
    ranks = torch.empty_like(f)
    ranks[f.argsort()] = torch.arange(len(f), dtype=f.dtype)
    return ranks / (len(f) - 1) - 0.5


class Evolution:
    def __init__(self, net, fitness, pairs=32, sigma=0.1, lr=0.05, decay=0.0, seed=0):
        self.net, self.fitness = net, fitness
        self.pairs, self.sigma = pairs, sigma
        self.gen = torch.Generator().manual_seed(seed)
        self.names = dict(net.named_parameters())
        self.opt = torch.optim.Adam(net.parameters(), lr=lr, weight_decay=decay)

    @torch.no_grad()
    def generation(self, episode_seed):
        center = parameters_to_vector(self.net.parameters())
        noise = torch.randn(self.pairs, len(center), generator=self.gen)
        noise = torch.cat([noise, -noise])
        crowd = unflatten(center + self.sigma * noise, self.names)

        def act(weights, obs):
            return functional_call(self.net, weights, (obs,))

        scores = self.fitness(lambda obs: vmap(act)(crowd, obs), len(noise), episode_seed)
        direction = -(centered_ranks(scores) @ noise) / (len(noise) * self.sigma)
        for (name, p), g in zip(self.names.items(), unflatten(direction, self.names).values()):
            p.grad = g.clone()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return scores.mean().item(), scores.max().item()

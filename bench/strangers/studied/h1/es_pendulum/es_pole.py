"""OpenAI-style evolution strategies on a home-made cart pole (vectorised over the population)."""
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(0)
POP, SIGMA, LR, HORIZON = 40, 0.2, 0.15, 120


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, s):
        return torch.tanh(self.net(s))


def physics(state, force, dt=0.02):
    x, v, th, om = state.unbind(-1)
    f = 10 * force.squeeze(-1)
    temp = (f + 0.05 * om ** 2 * th.sin()) / 1.1
    acc_th = (9.8 * th.sin() - th.cos() * temp) / (0.5 * (4 / 3 - 0.1 * th.cos() ** 2 / 1.1))
    acc_x = temp - 0.05 * acc_th * th.cos() / 1.1
    return torch.stack([x + dt * v, v + dt * acc_x, th + dt * om, om + dt * acc_th], -1)


policy = Policy()
for p in policy.parameters():
    p.requires_grad_(False)
shapes = {n: p.shape for n, p in policy.named_parameters()}


def unflatten(vec):
    out, i = {}, 0
    for name, shape in shapes.items():
        n = shape.numel()
        out[name] = vec[..., i:i + n].reshape(*vec.shape[:-1], *shape)
        i += n
    return out


@torch.no_grad()
def fitness(vectors):
    """Number of upright steps of every parameter vector, averaged over 4 starts."""
    params = unflatten(vectors)
    act = vmap(lambda w, s: functional_call(policy, w, (s,)))
    state = (0.1 * torch.randn(1, 4, 4)).expand(len(vectors), 4, 4)
    alive = torch.ones(len(vectors), 4)
    score = torch.zeros(len(vectors), 4)
    for _ in range(HORIZON):
        state = physics(state, act(params, state))
        alive = alive * ((state[..., 2].abs() < 0.3) & (state[..., 0].abs() < 2.4)).float()
        score += alive
    return score.mean(1)


theta = parameters_to_vector(policy.parameters())
for generation in range(25):
    eps = torch.randn(POP // 2, len(theta))
    eps = torch.cat([eps, -eps])
    score = fitness(theta + SIGMA * eps)
    rank = score.argsort().argsort().float() / (POP - 1) - 0.5
    theta = theta + LR / (POP * SIGMA) * (rank @ eps)
    if generation % 4 == 0:
        print(f"generation {generation:2d}: population mean {score.mean():.1f}, centre {fitness(theta[None]).item():.1f}")
vector_to_parameters(theta, policy.parameters())
print(f"final policy survives {fitness(parameters_to_vector(policy.parameters())[None]).item():.1f}/{HORIZON} steps")

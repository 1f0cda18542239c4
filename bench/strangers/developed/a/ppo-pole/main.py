"""PPO on a vectorised inverted pendulum that balances on a cart."""
from typing import NamedTuple

import torch
from torch import nn
from torch.distributions import Categorical


class Poles:
    def __init__(self, n, seed, limit=120):
        self.n, self.limit = n, limit
        self.g = torch.Generator().manual_seed(seed)
        self.s = torch.zeros(n, 4)
        self.t = torch.zeros(n)
        self._restart(torch.ones(n, dtype=torch.bool))

    def _restart(self, m):
        self.s[m] = 0.1 * torch.rand(int(m.sum()), 4, generator=self.g) - 0.05
        self.t[m] = 0

    def step(self, a):
        x, dx, th, dth = self.s.unbind(1)
        force = torch.where(a == 1, 10.0, -10.0)
        tmp = (force + 0.05 * dth ** 2 * th.sin()) / 1.1
        ddth = (9.8 * th.sin() - th.cos() * tmp) / (0.5 * (4 / 3 - 0.1 * th.cos() ** 2 / 1.1))
        ddx = tmp - 0.05 * ddth * th.cos() / 1.1
        self.s = torch.stack([x + .02 * dx, dx + .02 * ddx, th + .02 * dth, dth + .02 * ddth], 1)
        self.t += 1
        fell = (self.s[:, 0].abs() > 2.4) | (self.s[:, 2].abs() > 0.21)
        cut = (self.t >= self.limit) & ~fell
        final, lengths = self.s.clone(), self.t.clone()
        self._restart(fell | cut)
        return final, torch.ones(self.n), fell, cut, lengths


class Batch(NamedTuple):
    obs: torch.Tensor
    act: torch.Tensor
    logp: torch.Tensor
    adv: torch.Tensor
    ret: torch.Tensor


def body(out):
    net = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, out))
    for m in net:
        if isinstance(m, nn.Linear):
            nn.init.orthogonal_(m.weight, 2 ** 0.5)
            nn.init.zeros_(m.bias)
    nn.init.orthogonal_(net[-1].weight, 0.01 if out > 1 else 1.0)
    return net


pi, vf = None, None


@torch.no_grad()
def rollout(env, steps, gamma=0.98, lam=0.95):
    rec, ends = [], []
    for _ in range(steps):
        obs = env.s.clone()
        d = Categorical(logits=pi(obs))
        a = d.sample()
        nxt, r, fell, cut, length = env.step(a)
        # time limits are no failure: bootstrap with the value of the state that was reached
        r = r + gamma * vf(nxt).squeeze(1) * cut
        rec.append((obs, a, d.log_prob(a), r, (fell | cut).float(), vf(obs).squeeze(1)))
        ends += length[fell | cut].tolist()
    obs, act, logp, rew, done, val = map(torch.stack, zip(*rec))
    nxt_val, acc = vf(env.s).squeeze(1), torch.zeros(env.n)
    adv = torch.zeros_like(rew)
    for t in reversed(range(steps)):
        delta = rew[t] + gamma * nxt_val * (1 - done[t]) - val[t]
        acc = delta + gamma * lam * (1 - done[t]) * acc
        adv[t], nxt_val = acc, val[t]
    flat = lambda z: z.flatten(0, 1)
    return Batch(flat(obs), flat(act), flat(logp), flat(adv), flat(adv + val)), ends


def improve(b, opt, epochs=4, size=128, clip=0.2):
    for _ in range(epochs):
        for i in torch.randperm(len(b.act)).split(size):
            d = Categorical(logits=pi(b.obs[i]))
            ratio = (d.log_prob(b.act[i]) - b.logp[i]).exp()
            adv = (b.adv[i] - b.adv[i].mean()) / (b.adv[i].std() + 1e-8)
            surrogate = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            v_loss = (vf(b.obs[i]).squeeze(1) - b.ret[i]).pow(2).mean()
            loss = -surrogate + 0.5 * v_loss - 0.005 * d.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*pi.parameters(), *vf.parameters()], 0.5)
            opt.step()


if __name__ == "__main__":
    torch.manual_seed(5)
    pi, vf = body(2), body(1)
    opt = torch.optim.Adam([{"params": pi.parameters(), "lr": 2e-3}, {"params": vf.parameters(), "lr": 4e-3}], eps=1e-5)
    env = Poles(8, seed=5)
    for it in range(1, 21):
        batch, ends = rollout(env, 64)
        improve(batch, opt)
        if it % 5 == 0:
            print(f"update {it}: mean episode length {sum(ends) / max(len(ends), 1):.1f}")

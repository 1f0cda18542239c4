"""PPO on a vectorised corridor: walk to the lit end, the light is only visible in the first step (recurrent policy)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class HP:
    envs: int = 32
    horizon: int = 10
    length: int = 3
    gamma: float = 0.97
    lam: float = 0.9
    clip: float = 0.2
    epochs: int = 4
    updates: int = 40
    lr: float = 3e-3
    ent: float = 0.01


class Corridor:
    def __init__(self, n, hp, gen):
        self.n, self.hp, self.gen = n, hp, gen

    def reset(self):
        self.pos = torch.zeros(self.n)
        self.goal = torch.randint(0, 2, (self.n,), generator=self.gen) * 2.0 - 1
        self.alive = torch.ones(self.n)
        return torch.stack([self.pos, self.goal, self.alive], 1)

    def step(self, a):
        was = self.alive.clone()
        self.pos = self.pos + (a * 2.0 - 1) * was
        hit_end = self.pos.abs() >= self.hp.length
        reward = was * (hit_end * (self.pos.sign() == self.goal).float() - 0.02)
        self.alive = was * (~hit_end).float()
        obs = torch.stack([self.pos / self.hp.length, torch.zeros(self.n), self.alive], 1)
        return obs, reward, was


class Agent(nn.Module):
    def __init__(self, h=24):
        super().__init__()
        self.cell = nn.GRU(3, h)
        self.pi, self.v = nn.Linear(h, 2), nn.Linear(h, 1)

    def forward(self, obs, h=None):
        z, h = self.cell(obs, h)
        return Categorical(logits=self.pi(z)), self.v(z).squeeze(-1), h


@torch.no_grad()
def rollout(agent, env, greedy=False):
    obs, h, rec = env.reset(), None, []
    for _ in range(env.hp.horizon):
        dist, val, h = agent(obs[None], h)
        a = dist.probs.argmax(-1)[0] if greedy else dist.sample()[0]
        nxt, r, valid = env.step(a)
        rec.append((obs, a, dist.log_prob(a[None])[0], val[0], r, valid))
        obs = nxt
    return [torch.stack(z) for z in zip(*rec)]


def gae(val, rew, valid, hp):
    adv, last = torch.zeros_like(rew), torch.zeros(rew.size(1))
    for t in reversed(range(len(rew))):
        alive_next = valid[t + 1] if t + 1 < len(rew) else torch.zeros_like(last)
        v_next = val[t + 1] if t + 1 < len(rew) else torch.zeros_like(last)
        delta = rew[t] + hp.gamma * v_next * alive_next - val[t]
        last = delta + hp.gamma * hp.lam * alive_next * last
        adv[t] = last
    return adv, adv + val


def main():
    hp = HP()
    torch.manual_seed(90)
    env = Corridor(hp.envs, hp, torch.Generator().manual_seed(90))
    test_env = Corridor(200, hp, torch.Generator().manual_seed(91))
    agent = Agent()
    opt = torch.optim.Adam(agent.parameters(), lr=hp.lr, eps=1e-5)
    for up in range(hp.updates):
        obs, act, old_lp, val, rew, valid = rollout(agent, env)
        adv, ret = gae(val, rew, valid, hp)
        m = valid.bool()
        adv = (adv - adv[m].mean()) / (adv[m].std() + 1e-8)
        for _ in range(hp.epochs):
            dist, v, _ = agent(obs)
            ratio = (dist.log_prob(act) - old_lp).exp()
            surr = torch.min(ratio * adv, ratio.clamp(1 - hp.clip, 1 + hp.clip) * adv)
            loss = -surr[m].mean() + 0.5 * (v - ret)[m].pow(2).mean() - hp.ent * dist.entropy()[m].mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            opt.step()
        if up % 10 == 9:
            print(f"update {up + 1}: greedy return {rollout(agent, test_env, greedy=True)[4].sum(0).mean():.3f}")


if __name__ == "__main__":
    main()

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, obs=2, acts=4, hidden=64):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, acts))
        self.v = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def policy(self, obs):
        return Categorical(logits=self.pi(obs))

    def value(self, obs):
        return self.v(obs).squeeze(-1)


@dataclass
class Rollout:
    obs: list = field(default_factory=list)
    act: list = field(default_factory=list)
    logp: list = field(default_factory=list)
    rew: list = field(default_factory=list)
    done: list = field(default_factory=list)
    last_value: torch.Tensor = None

    def stacked(self):
        return (torch.stack(self.obs), torch.stack(self.act), torch.stack(self.logp),
                torch.stack(self.rew), torch.stack(self.done))


@torch.no_grad()
def collect(env, agent, steps):
    r = Rollout()
    obs = env.observe()
    for _ in range(steps):
        dist = agent.policy(obs)
        act = dist.sample()
        nxt, rew, done = env.step(act)
        r.obs.append(obs)
        r.act.append(act)
        r.logp.append(dist.log_prob(act))
        r.rew.append(rew)
        r.done.append(done)
        obs = nxt
    r.last_value = agent.value(obs)
    return r


def update(agent, optim, rollout, gamma=0.97, vf_coef=0.5, max_norm=0.5):
    obs, act, logp, rew, done = rollout.stacked()
    returns = torch.empty_like(rew)
    run = rollout.last_value
    for t in reversed(range(len(rew))):
        run = rew[t] + gamma * run * (1 - done[t])
        returns[t] = run

    values = agent.value(obs)
    adv = (returns - values).detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)

    pi_loss = -(logp * adv).mean()
    v_loss = (returns - values).pow(2).mean()
    loss = pi_loss + vf_coef * v_loss

    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), max_norm)
    optim.step()
    return {"pi": pi_loss.item(), "v": v_loss.item(), "mean_reward": rew.mean().item()}

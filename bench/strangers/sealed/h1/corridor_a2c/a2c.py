# advantage actor-critic on a little corridor world I made up
import random

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """Walk from the middle of a corridor to the goal on the right, the left end is a trap."""

    def __init__(self, n=11, limit=40):
        self.n, self.limit = n, limit

    def reset(self):
        self.pos, self.t = self.n // 2 + random.randint(-2, 2), 0
        return self._obs()

    def _obs(self):
        o = torch.zeros(self.n)
        o[self.pos] = 1.0
        return o

    def step(self, a):
        move = 1 if a == 1 else -1
        if random.random() < 0.1:
            move = -move
        self.pos += move
        self.t += 1
        if self.pos == self.n - 1:
            return self._obs(), 1.0, True
        if self.pos == 0:
            return self._obs(), -1.0, True
        return self._obs(), -0.02, self.t >= self.limit


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.Tanh(), nn.Linear(32, o))


class Agent:
    def __init__(self, n_obs, n_act, gamma=0.97):
        self.gamma = gamma
        self.nets = {"actor": mlp(n_obs, n_act), "critic": mlp(n_obs, 1)}
        self.opts = {"actor": torch.optim.Adam(self.nets["actor"].parameters(), lr=4e-3),
                     "critic": torch.optim.Adam(self.nets["critic"].parameters(), lr=8e-3)}

    def act(self, obs):
        return Categorical(logits=self.nets["actor"](obs)).sample().item()

    def losses(self, obs, acts, returns):
        value = self.nets["critic"](obs).squeeze(-1)
        adv = (returns - value).detach()
        dist = Categorical(logits=self.nets["actor"](obs))
        policy_loss = -(dist.log_prob(acts) * adv).mean() - 0.01 * dist.entropy().mean()
        return {"actor": policy_loss, "critic": nn.functional.mse_loss(value, returns)}

    def update(self, obs, acts, rewards):
        ret, out = 0.0, []
        for r in reversed(rewards):
            ret = r + self.gamma * ret
            out.insert(0, ret)
        losses = self.losses(torch.stack(obs), torch.tensor(acts), torch.tensor(out))
        for name, loss in losses.items():
            optimizer = self.opts[name]
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        return {k: v.item() for k, v in losses.items()}


def play(env, agent):
    obs, acts, rewards, done = [], [], [], False
    o = env.reset()
    while not done:
        with torch.no_grad():
            a = agent.act(o)
        obs.append(o)
        acts.append(a)
        o, r, done = env.step(a)
        rewards.append(r)
    return obs, acts, rewards


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    env = Corridor()
    agent = Agent(env.n, 2)
    history = []
    for episode in range(1, 301):
        obs, acts, rewards = play(env, agent)
        stats = agent.update(obs, acts, rewards)
        history.append(sum(rewards))
        if episode % 50 == 0:
            print(f"episode {episode:4d}  avg return {sum(history[-50:]) / 50:+.2f}  "
                  f"pi {stats['actor']:+.3f}  v {stats['critic']:.3f}")

"""Tiny advantage actor-critic on my own grid world (no gym needed)."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

SIZE = 5
GAMMA = 0.97
EPISODES = 350


class Grid:
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def reset(self):
        self.pos = np.array([0, 0])
        self.goal = np.array([SIZE - 1, SIZE - 1])
        self.t = 0
        return self.obs()

    def obs(self):
        v = np.zeros(2 * SIZE, dtype=np.float32)
        v[self.pos[0]] = 1
        v[SIZE + self.pos[1]] = 1
        return v

    def step(self, a):
        self.pos = np.clip(self.pos + np.array(self.moves[a]), 0, SIZE - 1)
        self.t += 1
        if (self.pos == self.goal).all():
            return self.obs(), 1.0, True
        return self.obs(), -0.02, self.t >= 40


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * SIZE, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, s):
        return Categorical(logits=self.net(s))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * SIZE, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, s):
        return self.net(s).squeeze(-1)


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor(), Critic()
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=5e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-2)

    def act(self, s):
        with torch.no_grad():
            return self.actor(torch.from_numpy(s)).sample().item()

    def update(self, states, actions, rewards):
        returns, g = [], 0.0
        for r in reversed(rewards):
            g = r + GAMMA * g
            returns.insert(0, g)
        states = torch.from_numpy(np.stack(states))
        actions = torch.tensor(actions)
        returns = torch.tensor(returns)

        values = self.critic(states)
        advantage = (returns - values).detach()
        dist = self.actor(states)
        policy_loss = -(dist.log_prob(actions) * advantage).mean()
        entropy = dist.entropy().mean()
        actor_loss = policy_loss - 0.01 * entropy
        critic_loss = nn.functional.mse_loss(values, returns)

        self.actor_opt.zero_grad()
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.actor_opt.step()
        self.critic_opt.step()
        return actor_loss.item(), critic_loss.item()


def main():
    torch.manual_seed(0)
    env, agent = Grid(), Agent()
    scores = []
    for ep in range(1, EPISODES + 1):
        s, done = env.reset(), False
        S, A, R = [], [], []
        while not done:
            a = agent.act(s)
            s2, r, done = env.step(a)
            S.append(s), A.append(a), R.append(r)
            s = s2
        al, cl = agent.update(S, A, R)
        scores.append(sum(R))
        if ep % 50 == 0:
            print(f"ep {ep}: score {np.mean(scores[-50:]):.3f} len {len(R)} actor {al:.3f} critic {cl:.3f}")


if __name__ == "__main__":
    main()

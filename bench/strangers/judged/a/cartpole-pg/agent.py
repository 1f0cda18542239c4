import torch
from torch import nn
from torch.distributions import Categorical


class PolicyAgent:
    def __init__(self, obs_dim, n_actions, lr=1e-2, gamma=0.99, max_norm=0.5):
        self.pi = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, n_actions))
        self.optim = torch.optim.Adam(self.pi.parameters(), lr=lr)
        self.gamma = gamma
        self.max_norm = max_norm
        self.reset()

    def reset(self):
        self.logps, self.rewards = [], []

    def act(self, obs):
        dist = Categorical(logits=self.pi(torch.as_tensor(obs, dtype=torch.float32)))
        a = dist.sample()
        self.logps.append(dist.log_prob(a))
        return a.item()

    @torch.no_grad()
    def greedy(self, obs):
        return self.pi(torch.as_tensor(obs, dtype=torch.float32)).argmax().item()

    def learn_from_episode(self, weight):
        """Add the gradient of one finished episode; `weight` is 1/episodes per update."""
        returns, g = [], 0.0
        for r in reversed(self.rewards):
            g = r + self.gamma * g
            returns.append(g)
        returns = torch.tensor(returns[::-1])
        adv = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
        loss = -(torch.stack(self.logps) * adv).sum() * weight
        loss.backward()
        self.reset()
        return loss.item()

    def update(self):
        self.optim.zero_grad()
        norm = nn.utils.clip_grad_norm_([p for p in self.pi.parameters() if p.grad is not None], self.max_norm)
        self.optim.step()
        return float(norm)

"""n-step advantage actor-critic on a batch of small grid worlds, all in torch."""
import torch
from torch import nn
from torch.distributions import Categorical


class Grid:
    """N agents look for the goal on an n x n board; an episode ends at the goal or after 20 moves."""
    MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, envs, n=5, seed=0):
        self.N, self.n = envs, n
        self.g = torch.Generator().manual_seed(seed)
        self.pos = self._cells(envs)
        self.goal = self._cells(envs)
        self.t = torch.zeros(envs, dtype=torch.long)

    def _cells(self, k):
        return torch.randint(self.n, (k, 2), generator=self.g)

    def obs(self):
        return torch.cat([self.pos, self.goal], 1).float() / (self.n - 1) - 0.5

    def step(self, a):
        self.pos = (self.pos + self.MOVES[a]).clamp(0, self.n - 1)
        self.t += 1
        won = (self.pos == self.goal).all(1)
        done = won | (self.t >= 20)
        r = won.float() - 0.02
        k = int(done.sum())
        self.pos[done], self.goal[done], self.t[done] = self._cells(k), self._cells(k), 0
        return self.obs(), r, done.float(), won


class ActorCritic(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh())
        self.pi, self.v = nn.Linear(h, 4), nn.Linear(h, 1)

    def forward(self, s):
        z = self.body(s)
        return Categorical(logits=self.pi(z)), self.v(z).squeeze(-1)


@torch.no_grad()
def success(net, steps=100):
    env, s, won, ended = Grid(64, seed=123), None, 0, 0
    s = env.obs()
    for _ in range(steps):
        s, _, done, w = env.step(net(s)[0].sample())
        won += w.sum().item()
        ended += done.sum().item()
    return won / max(ended, 1)


def main(updates=300, horizon=8, gamma=0.97, beta=0.01):
    torch.manual_seed(0)
    env, net = Grid(32, seed=1), ActorCritic()
    opt = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=0.99, eps=1e-5)
    s = env.obs()
    for u in range(1, updates + 1):
        logp, val, ent, rew, stop = [], [], [], [], []
        for _ in range(horizon):
            dist, v = net(s)
            a = dist.sample()
            logp.append(dist.log_prob(a)); val.append(v); ent.append(dist.entropy())
            s, r, done, _ = env.step(a)
            rew.append(r); stop.append(done)
        with torch.no_grad():
            ret = net(s)[1]
            targets = []
            for r, d in zip(reversed(rew), reversed(stop)):
                ret = r + gamma * (1 - d) * ret
                targets.insert(0, ret)
        logp, val, ent, targets = map(torch.stack, (logp, val, ent, targets))
        adv = targets - val
        loss = -(logp * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - beta * ent.mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        if u % 100 == 0:
            print(f"update {u}: episodes that reach the goal {success(net):.2f}")


if __name__ == "__main__":
    main()

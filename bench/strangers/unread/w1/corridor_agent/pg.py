# actor-critic on a tiny corridor, no gym needed
import torch, torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """Walk right to the exit at N; slippery floor."""
    N = 8

    def reset(self):
        self.s, self.t = 2, 0
        return self.obs()

    def obs(self):
        return nn.functional.one_hot(torch.tensor(self.s), self.N + 1).float()

    def step(self, a):
        move = 1 if a == 1 else -1
        if torch.rand(()) < 0.15:
            move = -move
        self.s = max(0, min(self.N, self.s + move))
        self.t += 1
        done = self.s == self.N
        return self.obs(), (1.0 if done else -0.02), done or self.t >= 40


class Agent(nn.Module):
    def __init__(self, n_obs, n_act=2, h=32):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(n_obs, h), nn.Tanh(), nn.Linear(h, n_act))
        self.v = nn.Sequential(nn.Linear(n_obs, h), nn.Tanh(), nn.Linear(h, 1))


def episode(env, agent, greedy=False):
    o, done = env.reset(), False
    obs, acts, rews = [], [], []
    with torch.no_grad():
        while not done:
            logits = agent.pi(o)
            a = logits.argmax().item() if greedy else Categorical(logits=logits).sample().item()
            obs.append(o)
            o, r, done = env.step(a)
            acts.append(a)
            rews.append(r)
    return torch.stack(obs), torch.tensor(acts), rews


def returns(rews, gamma=0.97):
    out, g = [], 0.0
    for r in reversed(rews):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out[::-1])


torch.manual_seed(4)
env, agent = Corridor(), Agent(Corridor.N + 1)
opt_pi = torch.optim.Adam(agent.pi.parameters(), lr=5e-3)
opt_v = torch.optim.Adam(agent.v.parameters(), lr=1e-2)
for it in range(1, 61):
    batch = [episode(env, agent) for _ in range(8)]
    O = torch.cat([b[0] for b in batch])
    A = torch.cat([b[1] for b in batch])
    R = torch.cat([returns(b[2]) for b in batch])
    value = agent.v(O).squeeze(-1)
    adv = (R - value).detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    dist = Categorical(logits=agent.pi(O))
    loss_pi = -(dist.log_prob(A) * adv).mean() - 0.01 * dist.entropy().mean()
    loss_v = (value - R).pow(2).mean()
    opt_pi.zero_grad(); loss_pi.backward(); opt_pi.step()
    opt_v.zero_grad(); loss_v.backward(); opt_v.step()
    if it % 15 == 0:
        score = sum(sum(episode(env, agent, greedy=True)[2]) for _ in range(20)) / 20
        print(f"{it} v-loss {loss_v.item():.3f} greedy return {score:.3f}")

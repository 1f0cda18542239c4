"""PPO for a toy lander: choose thrust so that the craft touches down slowly."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Landers:
    def __init__(self, n):
        self.n = n
        self.s = torch.zeros(n, 3)
        self.reset(torch.ones(n, dtype=torch.bool))

    def reset(self, who):
        k = int(who.sum())
        self.s[who] = torch.stack([torch.rand(k) * 0.5 + 0.75, -0.2 * torch.rand(k), torch.ones(k)], 1)

    def step(self, a):
        h, v, fuel = self.s.unbind(1)
        thrust = a.float() * 0.5 * (fuel > 0)
        v = v + 0.1 * (thrust - 0.4)
        h = h + 0.1 * v
        fuel = fuel - 0.02 * a.float()
        self.s = torch.stack([h, v, fuel], 1)
        landed, lost = h <= 0, h > 2
        reward = torch.where(landed, 1 - 2 * v.abs(), torch.zeros_like(v)) - lost.float()
        done = landed | lost
        final = reward[done].tolist()
        self.reset(done)
        return self.s.clone(), reward, done.float(), final


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3), nn.Softmax(dim=-1))
        self.critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))

    def forward(self, s):
        return Categorical(probs=self.actor(s)), self.critic(s)


def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
    adv, running = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        nxt = values[t + 1] if t + 1 < len(rewards) else last
        delta = rewards[t] + gamma * nxt * (1 - dones[t]) - values[t]
        running = delta + gamma * lam * (1 - dones[t]) * running
        adv[t] = running
    return adv, adv + values


def main(iterations=40, horizon=48, n_env=16, clip=0.2):
    torch.manual_seed(0)
    env, policy = Landers(n_env), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    state, finals = env.s.clone(), []
    for it in range(1, iterations + 1):
        traj = {k: [] for k in ("s", "a", "logp", "v", "r", "d")}
        with torch.no_grad():
            for _ in range(horizon):
                dist, value = policy(state)
                action = dist.sample()
                nxt, reward, done, final = env.step(action)
                for k, item in zip(traj, (state, action, dist.log_prob(action), value, reward, done)):
                    traj[k].append(item)
                state, finals = nxt, (finals + final)[-200:]
            last = policy(state)[1]
        s, a, old_logp, v, r, d = (torch.stack(x) for x in traj.values())
        adv, ret = gae(r, v, d, last)
        s, a, old_logp, adv, ret = s.flatten(0, 1), a.flatten(), old_logp.flatten(), adv.flatten(), ret.flatten()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(4):
            for b in torch.randperm(len(s)).split(192):
                dist, value = policy(s[b])
                ratio = (dist.log_prob(a[b]) - old_logp[b]).exp()
                gain = torch.min(ratio * adv[b], ratio.clamp(1 - clip, 1 + clip) * adv[b]).mean()
                loss = 0.5 * (value - ret[b]).square().mean() - gain - 0.01 * dist.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                opt.step()
        if it % 8 == 0:
            print(f"iteration {it:3d}  mean landing reward {sum(finals) / max(1, len(finals)):+.3f}")


if __name__ == "__main__":
    main()

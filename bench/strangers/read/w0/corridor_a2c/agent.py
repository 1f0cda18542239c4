import torch
from torch import nn
from torch.distributions import Categorical


class Corridors:
    """Many corridors at once: walk to the end that the colour of the start cell tells."""

    def __init__(self, n, length=9, seed=0):
        self.n, self.length = n, length
        self.g = torch.Generator().manual_seed(seed)
        self.reset(torch.ones(n, dtype=torch.bool), first=True)

    def reset(self, who, first=False):
        goal = torch.randint(2, (self.n,), generator=self.g)
        if first:
            self.goal, self.pos, self.t = goal, torch.full((self.n,), self.length // 2), torch.zeros(self.n)
        else:
            self.goal = torch.where(who, goal, self.goal)
            self.pos = torch.where(who, self.length // 2, self.pos)
            self.t = torch.where(who, 0.0, self.t)

    def observe(self):
        x = self.pos / (self.length - 1) * 2 - 1
        return torch.stack([x, self.goal * 2.0 - 1, self.t / 20], 1)

    def step(self, action):
        self.pos = (self.pos + action * 2 - 1).clamp(0, self.length - 1)
        self.t = self.t + 1
        target = self.goal * (self.length - 1)
        wrong = (1 - self.goal) * (self.length - 1)
        reward = (self.pos == target).float() - (self.pos == wrong).float() - 0.02
        done = (self.pos == target) | (self.pos == wrong) | (self.t >= 20)
        self.reset(done)
        return reward, done


def mlp(out):
    return nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, out))


class A2C:
    def __init__(self, gamma=0.97, entropy=0.01):
        self.actor, self.critic = mlp(2), mlp(1)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)
        self.gamma, self.entropy = gamma, entropy

    @torch.no_grad()
    def rollout(self, env, steps):
        obs, acts, rews, dones = [], [], [], []
        for _ in range(steps):
            o = env.observe()
            a = Categorical(logits=self.actor(o)).sample()
            r, d = env.step(a)
            obs.append(o), acts.append(a), rews.append(r), dones.append(d)
        ret = self.critic(env.observe()).squeeze(1)
        returns = []
        for r, d in zip(reversed(rews), reversed(dones)):
            ret = r + self.gamma * ret * (~d)
            returns.append(ret)
        return torch.cat(obs), torch.cat(acts), torch.cat(returns[::-1]), torch.stack(rews)

    def learn(self, obs, acts, returns):
        value = self.critic(obs).squeeze(1)
        advantage = (returns - value).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        dist = Categorical(logits=self.actor(obs))
        actor_loss = -(dist.log_prob(acts) * advantage).mean() - self.entropy * dist.entropy().mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        critic_loss = nn.functional.mse_loss(value, returns)
        self.actor_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        return actor_loss.item(), critic_loss.item()


if __name__ == "__main__":
    torch.manual_seed(9)
    env, agent = Corridors(32, seed=9), A2C()
    for update in range(150):
        obs, acts, returns, rews = agent.rollout(env, 12)
        la, lc = agent.learn(obs, acts, returns)
        if update % 30 == 29:
            print(f"{update + 1:4d} reward/step {rews.mean().item():+.3f} actor {la:+.3f} critic {lc:.4f}")

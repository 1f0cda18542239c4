"""Small synchronous A2C on a home-made balancing task (8 environments in parallel)."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(3)
N_ENVS, ROLLOUT, UPDATES, GAMMA = 8, 16, 120, 0.97


class PoleBatch:
    """Vectorised pole: state (angle, velocity), two pushes, reward 1 while upright."""

    def __init__(self, n):
        self.n = n
        self.state = self._fresh(n)
        self.age = torch.zeros(n)

    def _fresh(self, n):
        return (torch.rand(n, 2) - 0.5) * 0.2

    def step(self, action):
        angle, vel = self.state.unbind(1)
        push = action.float() * 2 - 1
        vel = vel + 0.12 * torch.sin(angle) * 3 + 0.25 * push + 0.01 * torch.randn(self.n)
        angle = angle + 0.12 * vel
        self.state = torch.stack([angle, vel], 1)
        self.age += 1
        done = (angle.abs() > 0.6) | (self.age >= 150)
        lengths = self.age[done].tolist()
        if done.any():
            self.state[done] = self._fresh(int(done.sum()))
            self.age[done] = 0
        return self.state.clone(), torch.ones(self.n), done.float(), lengths


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_actions)
        self.v = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h)


def discounted(rewards, dones, bootstrap):
    out, running = [], bootstrap
    for r, d in zip(reversed(rewards), reversed(dones)):
        running = r + GAMMA * running * (1 - d)
        out.append(running)
    return torch.stack(out[::-1])


def main():
    env = PoleBatch(N_ENVS)
    agent = ActorCritic(2, 2)
    optim = torch.optim.Adam(agent.parameters(), lr=3e-3)
    obs, recent = env.state.clone(), []

    for update in range(1, UPDATES + 1):
        observations, actions, rewards, dones = [], [], [], []
        for _ in range(ROLLOUT):
            with torch.no_grad():
                dist, _ = agent(obs)
            a = dist.sample()
            observations.append(obs)
            actions.append(a)
            obs, r, d, lengths = env.step(a)
            rewards.append(r)
            dones.append(d)
            recent = (recent + lengths)[-40:]

        with torch.no_grad():
            last_value = agent(obs)[1].squeeze(-1)
        returns = discounted(rewards, dones, last_value).flatten()

        dist, values = agent(torch.cat(observations))
        advantage = returns - values
        logp = dist.log_prob(torch.cat(actions))
        policy_loss = -(logp * advantage.detach()).mean()
        value_loss = advantage.pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()

        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optim.step()

        if update % 20 == 0:
            mean_len = sum(recent) / max(1, len(recent))
            print(f"update {update:4d}  episode length {mean_len:6.1f}  value loss {value_loss.item():.3f}")


if __name__ == "__main__":
    main()

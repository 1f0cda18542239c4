# A2C on a little grid world, everything in one file
import torch
import torch.nn as nn
from torch.distributions import Categorical

SIZE, N_ENVS, ROLLOUT, GAMMA = 5, 16, 8, 0.97


class Grid:
    """Vectorised: walk to the goal in the opposite corner; -0.01 per step, +1 at the goal."""

    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, n):
        self.n = n
        self.pos = torch.zeros(n, 2, dtype=torch.long)
        self.age = torch.zeros(n, dtype=torch.long)

    def obs(self):
        flat = self.pos[:, 0] * SIZE + self.pos[:, 1]
        return nn.functional.one_hot(flat, SIZE * SIZE).float()

    def step(self, a):
        self.pos = (self.pos + self.moves[a]).clamp(0, SIZE - 1)
        self.age += 1
        goal = (self.pos == SIZE - 1).all(1)
        done = goal | (self.age >= 40)
        reward = goal.float() - 0.01
        self.pos[done] = 0
        self.age[done] = 0
        return self.obs(), reward, done.float(), goal


class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(n_obs, 64), nn.Tanh())
        self.actor = nn.Sequential(nn.Linear(64, n_act), nn.Softmax(dim=-1))
        self.critic = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.shared(obs)
        return self.actor(h), self.critic(h).squeeze(-1)


torch.manual_seed(0)
env = Grid(N_ENVS)
net = ActorCritic(SIZE * SIZE, 4)
opt = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=0.99, eps=1e-5)
obs = env.obs()
goals = episodes = 0

for update in range(1, 401):
    logps, values, rewards, dones, entropies = [], [], [], [], []
    for _ in range(ROLLOUT):
        probs, v = net(obs)
        dist = Categorical(probs=probs)
        a = dist.sample()
        obs, r, d, g = env.step(a)
        logps.append(dist.log_prob(a))
        entropies.append(dist.entropy())
        values.append(v)
        rewards.append(r)
        dones.append(d)
        goals += g.sum().item()
        episodes += d.sum().item()

    with torch.no_grad():
        _, ret = net(obs)
    returns = []
    for r, d in zip(reversed(rewards), reversed(dones)):
        ret = r + GAMMA * ret * (1 - d)
        returns.insert(0, ret)
    returns = torch.stack(returns)
    values = torch.stack(values)
    adv = (returns - values).detach()

    policy_loss = -(torch.stack(logps) * adv).mean()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    opt.step()
    if update % 80 == 0:
        print(f"update {update}: {int(goals)}/{int(episodes)} episodes reached the goal, value loss {value_loss.item():.4f}")
        goals = episodes = 0

import random
from collections import deque, namedtuple

import numpy as np
import torch
from torch import nn, optim

SEED = 123
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

GAMMA = 0.95
BATCH_SIZE = 32
CAPACITY = 2000
LR = 2e-3
TARGET_SYNC = 50
EPISODES = 60

Transition = namedtuple("Transition", "state action reward next_state done")


class Cliff:
    """Small version of the cliff walk. 4 x 6 cells, start bottom-left, goal bottom-right."""
    rows, cols = 4, 6

    def reset(self):
        self.r, self.c, self.t = self.rows - 1, 0, 0
        return self._obs()

    def _obs(self):
        v = np.zeros(self.rows * self.cols, dtype=np.float32)
        v[self.r * self.cols + self.c] = 1.0
        return v

    def step(self, a):
        dr, dc = [(-1, 0), (1, 0), (0, -1), (0, 1)][a]
        self.r = min(max(self.r + dr, 0), self.rows - 1)
        self.c = min(max(self.c + dc, 0), self.cols - 1)
        self.t += 1
        if self.r == self.rows - 1 and 0 < self.c < self.cols - 1:
            return self._obs(), -1.0, True
        if self.r == self.rows - 1 and self.c == self.cols - 1:
            return self._obs(), 1.0, True
        return self._obs(), -0.02, self.t >= 40


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, k):
        batch = Transition(*zip(*random.sample(self.memory, k)))
        return Transition(torch.from_numpy(np.stack(batch.state)),
                          torch.tensor(batch.action).unsqueeze(1),
                          torch.tensor(batch.reward),
                          torch.from_numpy(np.stack(batch.next_state)),
                          torch.tensor(batch.done, dtype=torch.float32))

    def __len__(self):
        return len(self.memory)


def make_net():
    return nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 4))


policy_net, target_net = make_net(), make_net()
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = optim.Adam(policy_net.parameters(), lr=LR)
memory = ReplayMemory(CAPACITY)
steps_done = 0


def select_action(state, eps):
    if random.random() < eps:
        return random.randrange(4)
    with torch.no_grad():
        return policy_net(torch.from_numpy(state)).argmax().item()


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    b = memory.sample(BATCH_SIZE)
    # Q(s_t, a) for the actions that were taken
    q = policy_net(b.state).gather(1, b.action)
    # V(s_{t+1}) from the older net
    with torch.no_grad():
        next_v = target_net(b.next_state).max(1).values
        expected = b.reward + GAMMA * next_v * (1 - b.done)
    td = expected - q
    # Huber loss, written out to be able to weight the samples later
    loss = torch.where(td.abs() < 1, 0.5 * td ** 2, td.abs() - 0.5).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def greedy_return(env):
    state, done, total = env.reset(), False, 0.0
    while not done:
        state, reward, done = env.step(select_action(state, 0.0))
        total += reward
    return total


env = Cliff()
for episode in range(EPISODES):
    eps = max(0.1, 1.0 - episode / 40)
    state, done, losses = env.reset(), False, []
    while not done:
        action = select_action(state, eps)
        nxt, reward, done = env.step(action)
        terminal = abs(reward) == 1.0          # running out of time is no real end
        memory.push(state, action, reward, nxt, terminal)
        state = nxt
        steps_done += 1
        losses.append(optimize_model())
        if steps_done % TARGET_SYNC == 0:
            target_net.load_state_dict(policy_net.state_dict())
    if (episode + 1) % 20 == 0:
        done_losses = [l for l in losses if l is not None]
        print(f"episode {episode + 1} steps {steps_done} loss {np.mean(done_losses):.4f} "
              f"greedy return {greedy_return(Cliff()):.2f}")

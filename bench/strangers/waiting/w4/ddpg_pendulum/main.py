import random

import numpy as np
import torch

from agent import DDPG, ReplayBuffer
from env import Pendulum

SEED = 7
WARMUP = 1000
EPISODES = 15
BATCH = 128

random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

env = Pendulum(SEED)
agent = DDPG(env.obs_dim, env.act_dim, env.act_limit)
buffer = ReplayBuffer()

step = 0
for ep in range(EPISODES):
    obs, done, ret = env.reset(), False, 0.0
    while not done:
        if step < WARMUP:
            action = np.random.uniform(-2, 2, size=1).astype(np.float32)
        else:
            action = agent.act(obs)
        nxt, reward, done = env.step(action)
        buffer.add(obs, action, reward, nxt)
        obs = nxt
        ret += reward
        step += 1
        if step >= WARMUP:
            stats = agent.update(buffer.sample(BATCH))
    print(f"episode {ep:3d} return {ret:8.1f}")

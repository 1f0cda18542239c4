import random

import numpy as np
import torch

from dqn import DoubleDQN
from lake import Lake

random.seed(1); torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
env = Lake()
agent = DoubleDQN(env, device)
recent = []
for ep in range(220):
    s, done, ret = env.reset(), False, 0.0
    eps = max(0.05, 1 - ep / 120)
    while not done:
        a = agent.act(s, eps)
        s2, r, done = env.step(a)
        agent.memory.append((s, a, r, s2, float(done)))
        s, ret = s2, ret + r
        if len(agent.memory) > 200:
            agent.learn()
    recent = (recent + [ret])[-30:]
    if (ep + 1) % 44 == 0:
        print(f"episode {ep + 1:4d} eps {eps:.2f} return {np.mean(recent):+.3f}")

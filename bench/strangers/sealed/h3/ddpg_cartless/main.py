import random

import numpy as np
import torch

from agent import DDPGAgent
from env import PointMass

SEED = 11
random.seed(SEED); np.random.seed(SEED); torch.manual_seed(SEED)


def evaluate(agent, episodes=5):
    env, total = PointMass(seed=99), 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, rew, done = env.step(agent.act(obs)[0])
            total += rew
    return total / episodes


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    env = PointMass(seed=SEED)
    agent = DDPGAgent(2, 1, device)
    print("start return", round(evaluate(agent), 2))
    for episode in range(40):
        obs, done = env.reset(), False
        while not done:
            act = agent.act(obs, noise=0.3)
            nxt, rew, done = env.step(act[0])
            agent.memory.append((obs, act, rew, nxt, float(done)))
            obs = nxt
            if len(agent.memory) >= 200:
                stats = agent.update()
        if episode >= 9 and (episode + 1) % 10 == 0:
            print(f"episode {episode + 1} critic {stats['critic']:.3f} return {evaluate(agent):.2f}")

import numpy as np
import torch

from buffer import Moment, SurpriseReplay
from gridworld import Corridor
from learner import QLearner

torch.manual_seed(4)
rng = np.random.default_rng(4)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
env = Corridor(seed=4)
memory = SurpriseReplay(capacity=50_000)
agent = QLearner(Corridor.N + 1, 2, device)

returns, step = [], 0
for episode in range(90):
    obs, done, score = env.reset(), False, 0.0
    eps = max(0.05, 1.0 - episode / 50)
    while not done:
        action, value = agent.choose(obs, eps, rng)
        nxt, reward, done = env.step(action)
        memory.push(Moment(obs, action, reward, nxt, float(done), value))
        obs, score, step = nxt, score + reward, step + 1
        if len(memory) > 100 and step % 4 == 0:
            agent.learn(memory.draw(32))
        if step % 100 == 0:
            agent.sync()
    returns.append(score)
    if (episode + 1) % 15 == 0:
        print(f"episode {episode + 1:3d} steps {step:5d} memory {len(memory):5d} mean return {np.mean(returns[-15:]):+.3f}")

"""A tiny vectorised environment, numpy only.

The agent walks a corridor of `length` cells. A key lies somewhere in the
corridor; it must be picked up (by standing on the cell and choosing `grab`)
and brought to the door at the right end. Every step costs a little. Episodes
are cut after `max_steps`.
"""
import numpy as np

LEFT, RIGHT, GRAB = 0, 1, 2


class CorridorVec:
    n_actions = 3

    def __init__(self, n_envs, length=7, max_steps=30, seed=0):
        self.n, self.length, self.max_steps = n_envs, length, max_steps
        self.obs_dim = 2 * length + 1
        self.rng = np.random.default_rng(seed)
        self.pos = np.zeros(n_envs, dtype=int)
        self.key = np.zeros(n_envs, dtype=int)
        self.has_key = np.zeros(n_envs, dtype=bool)
        self.t = np.zeros(n_envs, dtype=int)
        self.ret = np.zeros(n_envs)

    def _spawn(self, which):
        k = int(which.sum())
        self.pos[which] = self.rng.integers(0, self.length, k)
        self.key[which] = self.rng.integers(0, self.length - 1, k)
        self.has_key[which] = False
        self.t[which] = 0
        self.ret[which] = 0.0

    def _obs(self):
        o = np.zeros((self.n, self.obs_dim), dtype=np.float32)
        rows = np.arange(self.n)
        o[rows, self.pos] = 1.0
        o[rows[~self.has_key], self.length + self.key[~self.has_key]] = 1.0
        o[:, -1] = self.has_key
        return o

    def reset(self):
        self._spawn(np.ones(self.n, dtype=bool))
        return self._obs()

    def step(self, action):
        """-> obs (already of the new episode when done), reward, terminated, truncated, final_obs, returns"""
        move = np.where(action == RIGHT, 1, np.where(action == LEFT, -1, 0))
        self.pos = np.clip(self.pos + move, 0, self.length - 1)
        picked = (action == GRAB) & (self.pos == self.key) & ~self.has_key
        self.has_key |= picked
        self.t += 1
        terminated = self.has_key & (self.pos == self.length - 1)
        truncated = (self.t >= self.max_steps) & ~terminated
        reward = -0.02 + 0.3 * picked + 1.0 * terminated
        self.ret += reward
        done = terminated | truncated
        finished = self.ret[done].tolist()
        final_obs = self._obs()
        if done.any():
            self._spawn(done)
        return self._obs(), reward.astype(np.float32), terminated, truncated, final_obs, finished

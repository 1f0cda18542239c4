"""CartPole in plain numpy, vectorised over environments (dynamics as in Barto, Sutton & Anderson 1983)."""
import numpy as np

GRAVITY = 9.8
MASS_CART = 1.0
MASS_POLE = 0.1
TOTAL_MASS = MASS_CART + MASS_POLE
HALF_LENGTH = 0.5
POLEMASS_LENGTH = MASS_POLE * HALF_LENGTH
FORCE = 10.0
DT = 0.02
X_LIMIT = 2.4
THETA_LIMIT = 12 * np.pi / 180


class VecCartPole:
    obs_dim = 4
    n_actions = 2

    def __init__(self, num_envs, max_steps=200, seed=0):
        self.num_envs = num_envs
        self.max_steps = max_steps
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((num_envs, 4))
        self.t = np.zeros(num_envs, dtype=np.int64)

    def _fresh(self, n):
        s = self.rng.uniform(-0.05, 0.05, size=(n, 4))
        s[:, 0] = self.rng.uniform(-1.0, 1.0, size=n)      # start anywhere near the middle
        return s

    def reset(self):
        self.state = self._fresh(self.num_envs)
        self.t[:] = 0
        return self.state.astype(np.float32)

    def step(self, action):
        """Returns next_obs, reward, terminated, truncated, last_obs.

        Finished environments are reset automatically; last_obs is the observation
        before that reset (needed to bootstrap from time-outs).
        """
        x, x_dot, th, th_dot = self.state.T
        force = np.where(action == 1, FORCE, -FORCE)
        cos, sin = np.cos(th), np.sin(th)
        tmp = (force + POLEMASS_LENGTH * th_dot ** 2 * sin) / TOTAL_MASS
        th_acc = (GRAVITY * sin - cos * tmp) / (
            HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * cos ** 2 / TOTAL_MASS)
        )
        x_acc = tmp - POLEMASS_LENGTH * th_acc * cos / TOTAL_MASS

        self.state = np.stack(
            [x + DT * x_dot, x_dot + DT * x_acc, th + DT * th_dot, th_dot + DT * th_acc], axis=1
        )
        self.t += 1

        terminated = (np.abs(self.state[:, 0]) > X_LIMIT) | (np.abs(self.state[:, 2]) > THETA_LIMIT)
        truncated = (self.t >= self.max_steps) & ~terminated
        last_obs = self.state.astype(np.float32)

        done = terminated | truncated
        if done.any():
            self.state[done] = self._fresh(int(done.sum()))
            self.t[done] = 0
        # 1 per step as usual, less when the cart stands far from the middle of the track
        reward = 1.0 - np.clip(np.abs(last_obs[:, 0]) / X_LIMIT, 0.0, 1.0)
        return self.state.astype(np.float32), reward, terminated, truncated, last_obs

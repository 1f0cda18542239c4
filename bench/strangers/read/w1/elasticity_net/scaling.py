import numpy as np
import torch


class Standardizer:
    """Per column z-score; accepts arrays and tensors."""

    def fit(self, a):
        self.mean_ = np.asarray(a).mean(axis=0)
        self.std_ = np.asarray(a).std(axis=0) + 1e-8
        return self

    def transform(self, a):
        z = (self._array(a) - self.mean_) / self.std_
        return self._like(z, a)

    def inverse(self, a):
        z = self._array(a) * self.std_ + self.mean_
        return self._like(z, a)

    @staticmethod
    def _array(a):
        return a.detach().cpu().numpy() if torch.is_tensor(a) else np.asarray(a)

    @staticmethod
    def _like(z, ref):
        return torch.as_tensor(z, dtype=ref.dtype, device=ref.device) if torch.is_tensor(ref) else z

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DualEncoder(nn.Module):
    def __init__(self, img_dim=40, vocab=50, width=64, proj=16):
        super().__init__()
        self.visual = nn.Sequential(nn.Linear(img_dim, width), nn.GELU(), nn.Linear(width, proj))
        self.token = nn.EmbeddingBag(vocab, width, mode="mean")
        self.text_proj = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, proj))
        self.logit_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def encode_image(self, image, normalize=True):
        f = self.visual(image)
        return self._finish(f, normalize)

    def encode_text(self, tokens, normalize=True):
        f = self.text_proj(self.token(tokens))
        return self._finish(f, normalize)

    @staticmethod
    def _finish(features, normalize):
        # embeddings leave the model here, e.g. for the search index
        features = F.normalize(features, dim=-1) if normalize else features
        return features.detach()

    def forward(self, image, tokens):
        img, txt = self.encode_image(image), self.encode_text(tokens)
        logits = self.logit_scale.exp() * img @ txt.t()
        return logits, logits.t()

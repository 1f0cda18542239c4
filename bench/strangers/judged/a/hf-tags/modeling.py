import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class TaggerConfig(PretrainedConfig):
    model_type = "mini-tagger"

    def __init__(self, vocab_size=100, dim=32, num_tags=6, freeze_embeddings=True, **kw):
        self.vocab_size, self.dim, self.num_tags = vocab_size, dim, num_tags
        self.freeze_embeddings = freeze_embeddings
        super().__init__(**kw)


class Tagger(PreTrainedModel):
    """Several tags per document. The word vectors are given and stay as they are."""
    config_class = TaggerConfig

    def __init__(self, config, vectors=None):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.dim, padding_idx=0)
        self.attend = nn.Linear(config.dim, 1)
        self.classify = nn.Sequential(nn.Linear(config.dim, 48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, config.num_tags))
        self.post_init()
        if vectors is not None:
            self.words.weight.data.copy_(vectors)
        if config.freeze_embeddings:
            self.words.weight.requires_grad_(False)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, input_ids, labels=None):
        e = self.words(input_ids)
        score = self.attend(e).squeeze(-1).masked_fill(input_ids == 0, -1e4)
        doc = (score.softmax(-1).unsqueeze(-1) * e).sum(1)
        logits = self.classify(doc)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)

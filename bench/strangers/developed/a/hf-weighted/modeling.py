import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class CnnTextConfig(PretrainedConfig):
    model_type = "cnn_text"

    def __init__(self, vocab_size=80, dim=32, kernels=(2, 3, 4), dropout=0.1, **kw):
        super().__init__(**kw)
        self.vocab_size, self.dim, self.kernels, self.dropout = vocab_size, dim, list(kernels), dropout


class CnnTextClassifier(PreTrainedModel):
    config_class = CnnTextConfig

    def __init__(self, config):
        super().__init__(config)
        self.emb = nn.Embedding(config.vocab_size, config.dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(config.dim, config.dim, k, padding=k // 2) for k in config.kernels)
        self.drop = nn.Dropout(config.dropout)
        self.cls = nn.Linear(config.dim * len(config.kernels), config.num_labels)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Conv1d)):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, input_ids, labels=None):
        h = self.emb(input_ids).transpose(1, 2)
        pooled = torch.cat([c(h).relu().amax(2) for c in self.convs], 1)
        logits = self.cls(self.drop(pooled))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)

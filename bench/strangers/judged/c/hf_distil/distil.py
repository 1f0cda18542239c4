import torch
import torch.nn.functional as F
from transformers import Trainer, TrainingArguments


class DistilArguments(TrainingArguments):
    def __init__(self, *args, alpha=0.5, temperature=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha = alpha
        self.temperature = temperature


class DistilTrainer(Trainer):
    def __init__(self, *args, teacher=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        out = model(**inputs)
        if not model.training:
            return (out.loss, out) if return_outputs else out.loss
        with torch.no_grad():
            soft = self.teacher(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
        t = self.args.temperature
        kd = F.kl_div(F.log_softmax(out.logits / t, -1), F.softmax(soft / t, -1), reduction="batchmean") * t * t
        loss = self.args.alpha * out.loss + (1 - self.args.alpha) * kd
        return (loss, out) if return_outputs else loss

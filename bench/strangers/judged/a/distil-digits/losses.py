import torch
import torch.nn.functional as F


def hinton(student_logits, teacher_logits, target, temperature=4.0, mix=0.7):
    """KL between softened distributions plus the ordinary loss (Hinton et al. 2015)."""
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    ) * temperature ** 2
    # the log-probabilities are needed anyway for the entropy that gets logged
    logp = F.log_softmax(student_logits, dim=1)
    hard = F.nll_loss(logp, target)
    entropy = -(logp.exp() * logp).sum(1).mean()
    return mix * soft + (1 - mix) * hard, {"soft": soft.item(), "hard": hard.item(), "H": entropy.item()}


def plain(logits, target):
    return F.cross_entropy(logits, target, label_smoothing=0.1)

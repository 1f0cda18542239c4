import logging
import os
import shutil
import warnings

import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed
from transformers.utils import logging as hf_logging

from build_base import build
from common import Utterances, accuracy

warnings.filterwarnings("ignore")
hf_logging.set_verbosity_error()
hf_logging.disable_progress_bar()
logging.disable(logging.WARNING)

BASE = "base_model"


def main():
    if not os.path.isdir(BASE):
        build(BASE)
    set_seed(7)
    model = AutoModelForSequenceClassification.from_pretrained(BASE, dtype="auto")
    train = Utterances(800, intents=6, cue_seed=1, seed=11)
    valid = Utterances(300, intents=6, cue_seed=1, seed=12)

    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=4,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=100,
        learning_rate=5e-5,
        lr_scheduler_type="constant",
        max_grad_norm=1.0,
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=valid, compute_metrics=accuracy)
    trainer.train()
    final = trainer.evaluate()
    print(f"final: loss {final['eval_loss']:.3f} accuracy {final['eval_accuracy']:.3f}")
    shutil.rmtree("out", ignore_errors=True)


if __name__ == "__main__":
    main()

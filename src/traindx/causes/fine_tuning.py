"""Causes in fine-tuning language models."""

from __future__ import annotations

from traindx.causes.cause import DATA, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="labels-all-masked",
        title="No label is left in the loss",
        what=(
            "Every label is the ignore value (−100): the prompt's length is taken after padding, a "
            "response template is never found in the tokens, or everything is masked. Cross "
            "entropy over nothing is NaN, or 0 where the loss guards against it, and no weight "
            "learns anything."
        ),
        severity=Severity.CRITICAL,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Mask by the prompt's own length: tokenize it without padding, or count its "
                    "attention mask; encode a response template with `add_special_tokens=False`, "
                    "since a BOS token in front never occurs in the middle of a text"
                ),
                expected_effect="the loss is finite, and falls",
                verify="`(labels != -100).sum(-1)` of a batch: the length of each answer",
                if_it_fails=(
                    "if it is still 0, the tokenizer merges the template with what is around it; "
                    "look for its ids in an encoded example"
                ),
            ),
        ),
        confirm_by=(Ask("count the labels of one batch that are not −100"),),
    ),
    Cause(
        name="eos-never-trained",
        title="The end token is masked in the labels, so the model never stops",
        what=(
            "The pad token is the end-of-sequence token, and labels are masked wherever the input "
            "is the pad token: the one real end of every answer is masked as well. The model never "
            "learns to stop, and generates until the limit."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Mask padding by the attention mask: `labels[attention_mask == 0] = -100`; or "
                    "add a pad token of its own, and then "
                    "`model.resize_token_embeddings(len(tokenizer))`"
                ),
                expected_effect="answers end where they should",
                verify="decode `labels[labels != -100]`: every answer ends with the end token",
                if_it_fails=(
                    "if the end token is missing in the text, append `tokenizer.eos_token` to "
                    "every answer before tokenizing"
                ),
            ),
        ),
        confirm_by=(
            Ask("check whether the last label of an example that is not −100 is the end token"),
        ),
    ),
)

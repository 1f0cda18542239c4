import torch

IGNORE = -100


class CompletionOnlyCollator:
    """Only what follows the response template contributes to the loss."""

    def __init__(self, response_template, tokenizer):
        self.tok = tokenizer
        self.template_ids = tokenizer.encode(response_template)

    def find_response(self, ids):
        n = len(self.template_ids)
        for start in range(len(ids) - n + 1):
            if ids[start:start + n] == self.template_ids:
                return start + n
        # conversation was cut before the answer: nothing to learn from it
        return len(ids)

    def __call__(self, rows):
        width = max(len(r) for r in rows)
        ids = torch.full((len(rows), width), self.tok.pad_token_id)
        labels = torch.full((len(rows), width), IGNORE)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for k, r in enumerate(rows):
            begin = self.find_response(r)
            ids[k, :len(r)] = torch.tensor(r)
            mask[k, :len(r)] = 1
            labels[k, begin:len(r)] = torch.tensor(r[begin:], dtype=torch.long)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

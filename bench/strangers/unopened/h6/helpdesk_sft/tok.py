from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def build_tokenizer(texts):
    words = sorted({w for t in texts for w in t.split()} - {"<eos>"})
    vocab = {w: i for i, w in enumerate(["<pad>", "<unk>", "<eos>"] + words)}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>")

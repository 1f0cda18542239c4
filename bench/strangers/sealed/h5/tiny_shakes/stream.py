import torch


class TokenStream:
    """Walks once through a long token array and hands out (input, target) blocks."""

    def __init__(self, tokens, batch, block):
        self.tokens = tokens
        self.batch = batch
        self.block = block
        self.cursor = 0

    @property
    def stride(self):
        return self.batch * self.block

    def __len__(self):
        return (len(self.tokens) - 1) // self.stride

    def seek(self, cursor):
        self.cursor = cursor

    def tell(self):
        return self.cursor

    def __iter__(self):
        self.cursor = 0
        while self.cursor + self.stride + 1 <= len(self.tokens):
            chunk = self.tokens[self.cursor:self.cursor + self.stride + 1]
            self.cursor += self.stride
            yield chunk[:-1].view(self.batch, self.block), chunk[1:].view(self.batch, self.block)

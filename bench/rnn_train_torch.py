#!/usr/bin/env python3
"""Training speed of rnn-small in PyTorch on Multi30k: target tokens a second, padding not counted.

bench/run train-rnn-small runs this in turns with gloss. It needs torch and sentencepiece, and the
peers' common.py in PYTHONPATH. The model is ours, parameter for parameter, on the same pieces: a bidirectional
GRU, s_0 from its backward state, two transitions around additive attention, maxout, an output layer of its own;
no layer norm. There are two ways to write it:

    eager  modules and autograd: nn.GRU on packed sequences, nn.GRUCell, cross_entropy of all logits
    lean   what a profile suggests: see LeanRnnSearch; the same loss and the same gradients

In both a time step computes the sentences that are still alive, which stand in front; products that need no
state are made for all steps at once; U_a h is made once a sentence. torch.compile of a transition and of a step
of attention, or backward by hand for the transitions, made lean no faster.
"""
import argparse
import time

import sentencepiece
import torch
import torch.nn.functional as F
from additive_torch import attend_step, backward_of_step, forward_of_step
from common import lines, token_batches
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

SIZES = {"rnn-small": {"embedding": 128, "hidden": 256, "d_a": 256, "maxout": 128}}
DROPOUT, SMOOTHING, CLIP_NORM = 0.1, 0.1, 5.0
WARM_UP = 3  # updates before the clock starts


class Batch:
    """Sentences in the order of their targets, longest first."""

    def __init__(self, pairs, pad):
        pairs = sorted(pairs, key=lambda pair: -len(pair[1]))
        sources, targets = ([torch.tensor(ids) for ids in side] for side in zip(*pairs))
        self.source = pack_sequence(sources, enforce_sorted=False)
        lengths = torch.tensor([len(ids) for ids in sources])
        # Time after time: all first tokens, all second ones...
        self.target = pack_sequence(targets).data
        self.input = pack_sequence([torch.cat([torch.tensor([pad]), ids[:-1]]) for ids in targets])
        self.alive = self.input.batch_sizes.tolist()
        hidden = torch.arange(int(lengths.max()))[None] >= lengths[:, None]
        self.hidden = hidden if bool(hidden.any()) else None
        # Of each place of the padded sources its row among the packed ones; any row where there is padding.
        rows = self.source._replace(data=torch.arange(len(self.source.data)))
        self.place = pad_packed_sequence(rows, batch_first=True)[0].flatten()


class RnnSearch(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, d_a, maxout):
        super().__init__()
        self.table = nn.Embedding(vocabulary, embedding)
        self.encoder = nn.GRU(embedding, hidden, bidirectional=True)
        self.W_s = nn.Linear(hidden, hidden)
        self.first = nn.GRUCell(embedding, hidden)
        self.second = nn.GRUCell(2 * hidden, hidden)
        self.W_a = nn.Linear(hidden, d_a, bias=False)
        self.U_a = nn.Linear(2 * hidden, d_a, bias=False)
        self.v_a = nn.Parameter(torch.randn(d_a) * d_a**-0.5)
        self.readout = nn.Linear(hidden + embedding + 2 * hidden, 2 * maxout)
        self.output = nn.Linear(maxout, vocabulary)
        nn.init.normal_(self.table.weight, 0, embedding**-0.5)

    def embed(self, ids):
        return F.dropout(self.table(ids), DROPOUT)

    def encode(self, batch):
        """Annotations [B, S, 2 hidden], and the backward state of the first token [B, hidden]."""
        states, last = self.encoder(batch.source._replace(data=self.embed(batch.source.data)))
        return pad_packed_sequence(states, batch_first=True)[0], last[1]

    def attention(self, keys, h, hidden):
        def attend(query, count):
            # A slice costs backward a copy, even if it is the whole.
            if count == len(keys):
                return attend_step(query, keys, h, self.v_a, hidden)
            return attend_step(query, keys[:count], h[:count], self.v_a, first_rows(hidden, count))

        return attend

    def mean_loss(self, output, target):
        return F.cross_entropy(self.output(output), target, label_smoothing=SMOOTHING)

    def forward(self, batch):
        h, last = self.encode(batch)
        attend = self.attention(self.U_a(h), h, batch.hidden)
        y = self.embed(batch.input.data)
        gates = F.linear(y, self.first.weight_ih, self.first.bias_ih).split(batch.alive)
        s = torch.tanh(self.W_s(last))
        states, contexts = [], []
        for gates_now, count in zip(gates, batch.alive):
            if count < len(s):
                s = s[:count]
            query = transition(gates_now, s, self.first.weight_hh, self.first.bias_hh)
            context = attend(self.W_a(query), count)
            s = self.second(context, query)
            states.append(s)
            contexts.append(context)
        deep = self.readout(torch.cat([torch.cat(states), y, torch.cat(contexts)], 1))
        return self.mean_loss(torch.maximum(*deep.chunk(2, 1)), batch.target)


def first_rows(hidden, count):
    return None if hidden is None else hidden[:count]


def transition(gates, h, weight, bias):
    """A GRU's, with its input gates W_ih x + b_ih already made."""
    x_r, x_z, x_n = gates.chunk(3, 1)
    h_r, h_z, h_n = F.linear(h, weight, bias).chunk(3, 1)
    n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return torch.lerp(n, h, torch.sigmoid(x_z + h_z))


class LeanRnnSearch(RnnSearch):
    """The three places where modules and autograd lose time: the encoder, the attention, the output layer."""

    def encode(self, batch):
        """nn.GRU slices the packed rows step by step, and backward of each slice fills all rows with zeros."""
        sizes = batch.source.batch_sizes.tolist()
        x, unit = self.embed(batch.source.data), self.encoder
        h, forward = x.new_zeros(sizes[0], unit.hidden_size), []
        gates = F.linear(x, unit.weight_ih_l0, unit.bias_ih_l0).split(sizes)
        for gates_now, count in zip(gates, sizes):
            h = transition(gates_now, h if count == len(h) else h[:count], unit.weight_hh_l0, unit.bias_hh_l0)
            forward.append(h)
        h, backward = x.new_zeros(0, unit.hidden_size), []
        gates = F.linear(x, unit.weight_ih_l0_reverse, unit.bias_ih_l0_reverse).split(sizes)
        for gates_now, count in zip(reversed(gates), reversed(sizes)):
            if count > len(h):
                h = torch.cat([h, h.new_zeros(count - len(h), unit.hidden_size)])
            h = transition(gates_now, h, unit.weight_hh_l0_reverse, unit.bias_hh_l0_reverse)
            backward.append(h)
        states = torch.cat([torch.cat(forward), torch.cat(backward[::-1])], 1)
        padded = states.index_select(0, batch.place).view(len(h), len(sizes), -1)
        return padded, h.index_select(0, batch.source.unsorted_indices)

    def attention(self, keys, h, hidden):
        sums = []

        def attend(query, count):
            return Attend.apply(query, keys, h, self.v_a, hidden, count, sums)

        return attend

    def mean_loss(self, output, target):
        return OutputLoss.apply(output, self.output.weight, self.output.bias, target)


class Attend(torch.autograd.Function):
    """A step of attention that adds up the gradients of keys, h and v_a in place. The first step returns the
    sums: its backward comes last, since the query of every other step comes from the context before it."""

    @staticmethod
    def forward(ctx, query, keys, h, v_a, hidden, count, sums):
        ctx.first = not sums
        if ctx.first:
            sums.extend(torch.zeros_like(like) for like in (keys, h, v_a))
        keys, h = keys[:count], h[:count]
        z, a, context = forward_of_step(query, keys, h, v_a, first_rows(hidden, count))
        ctx.kept = z, a, h, v_a, sums
        return context

    @staticmethod
    def backward(ctx, dc):
        (z, a, h, v_a, sums), ctx.kept = ctx.kept, None
        dkeys, dh, dv_a = sums
        dquery = backward_of_step(z, a, dc, h, v_a, dkeys[: len(h)], dh[: len(h)], dv_a)
        return dquery, *(sums if ctx.first else (None, None, None)), None, None, None


class OutputLoss(torch.autograd.Function):
    """cross_entropy(linear(x, weight, bias), target, label_smoothing=SMOOTHING), its gradients made along with
    it, block by block: logits of all tokens, and what autograd makes of them, would fit into no cache."""

    @staticmethod
    def forward(ctx, x, weight, bias, target, rows=256):
        share, scale, loss = SMOOTHING / len(weight), 1 / len(x), 0.0
        dx, dweight, dbias = torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(bias)
        for x_now, dx_now, target_now in zip(x.split(rows), dx.split(rows), target[:, None].split(rows)):
            p = torch.log_softmax(torch.addmm(bias, x_now, weight.T), 1)
            loss -= scale * ((1 - SMOOTHING) * p.gather(1, target_now).sum() + share * p.sum())
            p.exp_().sub_(share)
            p.scatter_add_(1, target_now, p.new_full(target_now.shape, SMOOTHING - 1)).mul_(scale)
            torch.mm(p, weight, out=dx_now)
            dweight.addmm_(p.T, x_now)
            dbias += p.sum(0)
        ctx.gradients = dx, dweight, dbias
        return loss

    @staticmethod
    def backward(ctx, above):
        gradients, ctx.gradients = ctx.gradients, None
        return *(gradient.mul_(above) for gradient in gradients), None, None


IMPLEMENTATIONS = {"eager": RnnSearch, "lean": LeanRnnSearch}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", required=True, help="a SentencePiece model, as gloss train makes it")
    parser.add_argument("--size", choices=SIZES, default="rnn-small")
    parser.add_argument("--impl", choices=IMPLEMENTATIONS, default="lean")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    pieces = sentencepiece.SentencePieceProcessor(model_file=arguments.vocabulary)
    pad, end = len(pieces), [pieces.eos_id()]  # padding is the start symbol too, as ours is
    sides = (pieces.encode(lines(f"train.{language}")) for language in ("en", "de"))
    pairs = [(source + end, target + end) for source, target in zip(*sides)]
    batches = token_batches(pairs, arguments.batch_tokens)

    model = IMPLEMENTATIONS[arguments.impl](pad + 1, **SIZES[arguments.size])
    parameters = list(model.parameters())
    adam = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    seconds, tokens = 0.0, 0
    for step in range(WARM_UP + arguments.steps):
        batch = Batch([pairs[i] for i in batches[step % len(batches)]], pad)
        start = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        model(batch).backward()
        nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        adam.step()
        if step >= WARM_UP:
            seconds += time.perf_counter() - start
            tokens += len(batch.target)
    print(f"{arguments.impl} {arguments.size} {arguments.threads} threads: {tokens / seconds:.0f} target tok/s, "
          f"parameters {sum(parameter.numel() for parameter in parameters)}")


if __name__ == "__main__":
    main()

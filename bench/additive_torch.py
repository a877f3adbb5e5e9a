#!/usr/bin/env python3
"""Additive attention, forward and backward, in turns: additive_bench and the fastest way known to write it in PyTorch.

bench/additive.sh calls this with files of batches, each a line "source target" of two lengths a sentence. Two ways of
calling, as in additive_bench: `step`, once a time step with one query for each sentence that is still alive, and `all`,
every query at once. PyTorch pads; the ways to write it are

    eager      the formula, differentiated by autograd
    compiled   the same through torch.compile
    by hand    backward written out: gradients added in place, nothing stored but tanh, finished sentences left out

All of them are tried on each batch, after their gradients were compared with eager's, and the fastest one is measured.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch


def score(query, keys, v_a, hidden):
    """query [B, d_a] and keys [B, T, d_a], or [B, n, 1, d_a] and [B, 1, T, d_a]."""
    e = torch.tanh(query + keys) @ v_a
    return e if hidden is None else e.masked_fill(hidden, float("-inf"))


def attend_step(query, keys, h, v_a, hidden):
    a = torch.softmax(score(query[:, None], keys, v_a, hidden), -1)
    return torch.bmm(a[:, None], h)[:, 0]


def attend_all(query, keys, h, v_a, hidden):
    hidden = None if hidden is None else hidden[:, None]
    return torch.bmm(torch.softmax(score(query[:, :, None], keys[:, None], v_a, hidden), -1), h)


class Batch:
    """Padded random numbers for sentences in the order of their targets, longest first: the living stand in front."""

    def __init__(self, path, d_a, d_h):
        pairs = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
        pairs.sort(key=lambda pair: -pair[1])
        sources, targets = (torch.tensor(side) for side in zip(*pairs))
        self.size, self.steps = len(pairs), int(targets.max())
        self.alive = [int((targets > i).sum()) for i in range(self.steps)]
        longest = int(sources.max())
        hidden = torch.arange(longest)[None] >= sources[:, None]
        self.hidden = hidden if bool(hidden.any()) else None
        self.keys = torch.randn(self.size, longest, d_a)
        self.h = torch.randn(self.size, longest, d_h)
        self.v_a = torch.randn(d_a)
        self.query = torch.randn(self.steps, self.size, d_a)
        live = torch.arange(self.steps)[:, None] < targets[None]
        self.upstream = torch.randn(self.steps, self.size, d_h) * live[..., None]
        self.queries = [self.query[i].clone() for i in range(self.steps)]
        self.query_all = self.query.transpose(0, 1).contiguous()
        self.upstream_all = self.upstream.transpose(0, 1).contiguous()
        for leaf in (self.keys, self.h, self.v_a, self.query_all, *self.queries):
            leaf.requires_grad_(True)

    def hidden_of(self, count):
        return None if self.hidden is None else self.hidden[:count]


def step_autograd(batch, attend):
    contexts = [attend(q, batch.keys, batch.h, batch.v_a, batch.hidden) for q in batch.queries]
    leaves = [batch.keys, batch.h, batch.v_a, *batch.queries]
    return torch.autograd.grad(contexts, leaves, list(batch.upstream))


def all_autograd(batch, attend):
    context = attend(batch.query_all, batch.keys, batch.h, batch.v_a, batch.hidden)
    return torch.autograd.grad(context, [batch.keys, batch.h, batch.v_a, batch.query_all], batch.upstream_all)


def softmax_backward(a, da):
    return a * (da - (a * da).sum(-1, keepdim=True))


def forward_of_step(query, keys, h, v_a, hidden):
    """attend_step by hand: tanh and the weights, which backward_of_step needs, and the context."""
    z = (keys + query[:, None]).tanh_()
    e = z @ v_a
    if hidden is not None:
        e.masked_fill_(hidden, float("-inf"))
    a = torch.softmax(e, -1)
    return z, a, torch.bmm(a[:, None], h)[:, 0]


def backward_of_step(z, a, dc, h, v_a, dkeys, dh, dv_a):
    """Adds to dkeys, dh and dv_a in place, returns the gradient of the query. Overwrites z."""
    dh.addcmul_(a[:, :, None], dc[:, None])
    # The vector in front: bmm of a matrix and a vector behind it takes several times as long.
    de = softmax_backward(a, torch.bmm(dc[:, None], h.transpose(1, 2))[:, 0])
    dv_a.addmv_(z.view(-1, z.shape[-1]).T, de.view(-1))
    du = z.square_().neg_().add_(1).mul_(v_a).mul_(de[..., None])
    dkeys += du
    return du.sum(1)


@torch.no_grad()
def step_by_hand(batch):
    kept = []
    for i, alive in enumerate(batch.alive):
        query, hidden = batch.queries[i][:alive], batch.hidden_of(alive)
        z, a, _ = forward_of_step(query, batch.keys[:alive], batch.h[:alive], batch.v_a, hidden)
        kept.append((z, a))
    dkeys, dh, dv_a = torch.zeros_like(batch.keys), torch.zeros_like(batch.h), torch.zeros_like(batch.v_a)
    dqueries = [None] * batch.steps
    for i in reversed(range(batch.steps)):
        (z, a), alive = kept.pop(), batch.alive[i]
        dqueries[i] = torch.zeros_like(batch.queries[i])
        dqueries[i][:alive] = backward_of_step(z, a, batch.upstream[i, :alive], batch.h[:alive], batch.v_a,
                                               dkeys[:alive], dh[:alive], dv_a)
    return [dkeys, dh, dv_a, *dqueries]


@torch.no_grad()
def all_by_hand(batch):
    z = (batch.query_all[:, :, None] + batch.keys[:, None]).tanh_()
    e = z @ batch.v_a
    if batch.hidden is not None:
        e.masked_fill_(batch.hidden[:, None], float("-inf"))
    a = torch.softmax(e, -1)
    torch.bmm(a, batch.h)
    dc = batch.upstream_all
    dh = torch.bmm(a.transpose(1, 2), dc)
    de = softmax_backward(a, torch.bmm(dc, batch.h.transpose(1, 2)))
    dv_a = z.view(-1, z.shape[-1]).T @ de.view(-1)
    du = z.square_().neg_().add_(1).mul_(batch.v_a).mul_(de[..., None])
    return [du.sum(1), dh, dv_a, du.sum(2)]


def ways(mode, batch, compile_too):
    """name: function without arguments that gives all gradients."""
    attend, autograd, by_hand = {
        "step": (attend_step, step_autograd, step_by_hand),
        "all": (attend_all, all_autograd, all_by_hand),
    }[mode]
    found = {"eager": lambda: autograd(batch, attend), "by hand": lambda: by_hand(batch)}
    if compile_too:
        torch._dynamo.reset()
        compiled = torch.compile(attend, dynamic=False)
        found["compiled"] = lambda: autograd(batch, compiled)
    return found


def seconds(run, least):
    """The mean time of one call over at least so many seconds."""
    calls, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < least or calls < 2:
        run()
        calls += 1
    return spent / calls


def fastest(mode, batch, compile_too):
    found = ways(mode, batch, compile_too)
    want = found["eager"]()
    took = {}
    for name, run in found.items():
        try:
            got = run()
        except Exception as error:  # a compiler that is missing or fails: the other ways remain
            print(f"  PyTorch, {name}: does not run here ({str(error).splitlines()[0][:100]})", file=sys.stderr)
            continue
        for a, b in zip(got, want):
            if not torch.allclose(a, b, rtol=1e-3, atol=1e-3):
                sys.exit(f"additive_torch.py: the gradients of '{name}' are not those of 'eager'")
        took[name] = min(seconds(run, 0.3) for _ in range(3))
    name = min(took, key=took.get)
    print(f"  PyTorch, {mode}: " + ", ".join(f"{n} {1e3 * t:.1f} ms" for n, t in took.items()))
    return name, found[name]


def gloss_seconds(arguments, path, mode):
    command = [arguments.bench, "--batch", path, "--threads", arguments.threads, "--d-a", arguments.d_a, "--d-h",
               arguments.d_h, f"--benchmark_filter={mode}/", f"--benchmark_min_time={arguments.seconds}",
               "--benchmark_format=json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"additive_torch.py: additive_bench failed with {done.returncode}")
    return json.loads(done.stdout)["benchmarks"][0]["real_time"] * 1e-3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("batches", nargs="+", type=pathlib.Path)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each side in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--d-a", type=int, default=256)
    parser.add_argument("--d-h", type=int, default=512)
    parser.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    rows, good = [], True
    for path in arguments.batches:
        batch = Batch(path, arguments.d_a, arguments.d_h)
        print(f"{path.name}: {batch.size} sentences, {batch.steps} steps, PyTorch {torch.__version__}")
        for mode in ("step", "all"):
            name, run = fastest(mode, batch, not arguments.no_compile)
            ours, theirs = [], []
            for _ in range(arguments.rounds):
                ours.append(gloss_seconds(arguments, path, mode))
                theirs.append(seconds(run, arguments.seconds))
            ratios = [b / a for a, b in zip(ours, theirs)]
            good &= statistics.median(ratios) >= 1.5
            rows.append((path.name, mode, ours, theirs, name, ratios))
    print(f"{'batch':<16}{'calls':<6}{'gloss ms':>9}{'PyTorch ms':>11}  {'way':<10}{'ratio: median':>13}{'min':>7}{'max':>7}")
    for batch, mode, ours, theirs, name, ratios in rows:
        print(f"{batch:<16}{mode:<6}{1e3 * statistics.median(ours):>9.2f}{1e3 * statistics.median(theirs):>11.2f}  "
              f"{name:<10}{statistics.median(ratios):>13.2f}{min(ratios):>7.2f}{max(ratios):>7.2f}")
    print(f"needed: 1.5 in every row: {'yes' if good else 'NO'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

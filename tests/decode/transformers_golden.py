"""Writes golden/beam_transformers.json: what transformers' beam search finds on the toy scorers of the tests.

Usage: python transformers_golden.py OUTPUT   (needs torch and transformers; not part of the test run)
The toy scorer here repeats ToyScorer of toy_scorer.h to the bit.
"""

import json
import sys

import torch
import transformers
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

MASK = (1 << 64) - 1
END, START = 0, 1
LEVELS = 1 << 16


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Key:
    """gloss::RandomKey."""

    def __init__(self, seed):
        self.state = mix((seed + 0x9E3779B97F4A7C15) & MASK)

    def extended(self, part):
        key = Key(0)
        key.state = mix(self.state ^ mix((part + 0xD1B54A32D192ED03) & MASK))
        return key

    def bits(self, index):
        return mix((self.state + index * 0x9E3779B97F4A7C15) & MASK)


def toy_logits(case, prefix):
    key = Key(case["seed"])
    for part in [*case["source"], len(prefix), *prefix]:
        key = key.extended(part)
    row = [(key.bits(v) % LEVELS) * (8.0 / LEVELS) for v in range(case["vocabulary"])]
    row[END] += case["end_bonus"]
    return row


class Toy(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, case):
        super().__init__(PretrainedConfig(vocab_size=case["vocabulary"], is_decoder=True))
        self.case = case
        self.anchor = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, return_dict=True, **_):
        rows = [toy_logits(self.case, prefix[1:]) for prefix in input_ids.tolist()]
        return CausalLMOutput(logits=torch.tensor(rows, dtype=torch.float32).unsqueeze(1))


def run(case):
    generation = GenerationConfig(
        num_beams=case["beam"],
        num_return_sequences=case["n_best"],
        length_penalty=case["length_penalty"],
        early_stopping=case["early_stopping"],
        max_length=case["max_length"] + 1,  # it counts the start symbol
        min_length=case["min_length"],
        no_repeat_ngram_size=case["no_repeat_ngram"],
        forced_eos_token_id=END if case["force_end"] else None,
        bad_words_ids=[[START]],
        bos_token_id=START,
        eos_token_id=END,
        pad_token_id=START,
        do_sample=False,
        use_cache=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    found = Toy(case).eval().generate(torch.tensor([[START]]), generation_config=generation)
    results = []
    for row, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
        tokens = [token for token in row[1:] if token != START]
        if END in tokens:
            tokens = tokens[: tokens.index(END) + 1]
        results.append({"tokens": tokens, "score": score})
    return results


def cases():
    for i in range(301):
        key = Key(99).extended(i)
        pick = lambda index, bound: key.bits(index) % bound
        beam = 2 + pick(0, 4)
        max_length = 2 + pick(1, 11)
        yield {
            "seed": i,
            "source": [i, END],
            "vocabulary": 12 + pick(2, 8),
            "end_bonus": pick(3, 5) - 1,
            "beam": beam,
            "n_best": 1 + pick(4, beam),
            "length_penalty": [-1.0, -0.5, 0.0, 0.6, 1.0, 2.0][pick(5, 6)],
            "max_length": max_length,
            "min_length": 0 if pick(6, 3) else 1 + pick(7, max_length),
            "no_repeat_ngram": [0, 0, 2, 3][pick(8, 4)],
            "force_end": bool(pick(9, 2)),
            "early_stopping": "never" if i < 150 else True,
        }


def main():
    golden = []
    for case in cases():
        with torch.no_grad():
            expected = run(case)
        scores = [hypothesis["score"] for hypothesis in expected]
        if len(set(scores)) == len(scores):  # the order of equal scores is nobody's
            golden.append({**case, "expected": expected})
    with open(sys.argv[1], "w") as file:
        file.write('{"transformers": "%s", "cases": [\n' % transformers.__version__)
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in golden))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()

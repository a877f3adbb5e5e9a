"""What was found: lines of JSON that are only added to, and the page that is made of the newest of each row."""
import json

from .machine import processor
from .measure import number
from .process import settings
from .workshop import ONLY_AVX2

INTRODUCTION = """\
# Benchmarks

Made by `bench/run`; [bench/README.md](../bench/README.md#how-the-figures-are-made-fair) says how each row is made
fair. Ours and theirs run in turns on the same cores, each peer at the best setting that a short search found at the
start of the row. A figure is the median (least to greatest); ratios are taken round by round. In the commands
`$GLOSS_SHARED` is the folder beside the repository, `$WORK` the work folder of `bench/run`, `$VENV` the peers' Python
environment and `$MODEL` the model given by `--model`. A `gloss translate` without a file is fed through a pipe. `$AVX2`,
which keeps the peers from newer instructions, is `{avx2}`.

- What gloss takes to segment text and to put translations together is part of its time; the peers get pieces and return
  pieces before and after the clock. Loading is nobody's, but in the rows that are about it.
- Marian's translator reads a model that `bench/marian_model.py` makes of ours, with the same weights. It knows no least
  length, so it has no part in the rows whose lengths are forced. CTranslate2 has no bfloat16 on CPUs.
"""


def spread_text(spread):
    return f"{number(spread['median'])} ({number(spread['least'])} to {number(spread['greatest'])})"


def wanted_text(claim):
    if claim["wanted"] is None:
        return ""
    if claim["compare"] == "difference":
        return f"within {claim['wanted']}"
    return ("≥ " if claim["better"] == "more" else "≤ ") + f"{claim['wanted']:g}"


def verdict_text(claim):
    if "values" not in claim:
        return "not measured"
    if "reached" not in claim:
        return ""
    return "yes" if claim["reached"] else "**no**"


def append(path, result):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(result, ensure_ascii=False) + "\n")


def newest(path):
    """The newest result of each row and instruction set, by (row, instruction set)."""
    results = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            results[result["row"], result["isa"]] = result
    return results


def _summary(results):
    lines = ["| what | one | other | one / other | wanted | reached |", "|---|---|---|---|---|---|"]
    for result in results:
        for claim in result["claims"]:
            what = f"[{result['title']}](#{result['anchor']}): {claim['what']}"
            cells = ["", "", ""]
            if "values" in claim:
                cells = [f"{name}: {spread_text(result['contenders'][name]['spread'])}" for name in claim["sides"]]
                cells = [f"{cells[0]} {result['unit']}", cells[1], spread_text(claim["values"])]
            lines.append(f"| {what} | {' | '.join(cells)} | {wanted_text(claim)} | {verdict_text(claim)} |")
    return lines


def _details(result):
    lines = [f"### {result['title'].replace('`', '')}, {result['isa']}", "",
             f"`bench/run {result['row']}" + ("" if result["isa"] == "native" else f" --isa {result['isa']}") + "`, "
             f"{result['date']}, {result['machine']}, {result['threads']} threads, "
             f"{result['rounds']} round{'s' if result['rounds'] > 1 else ''}; other programs took "
             f"{100 * result['others']:.0f} % of the machine. {result['versions']}.", "",
             f"| {result['unit']} | setting | median (least to greatest) |", "|---|---|---|"]
    commands = []
    for one in result["contenders"].values():
        if "missing" in one:
            lines.append(f"| {one['name']} | | not measured: {one['missing'].replace('|', '/')} |")
        else:
            lines.append(f"| {one['name']} | {one['setting']} | {spread_text(one['spread'])} |")
            commands.append(f"# {one['name']}\n{one['command']}")
    return lines + ["", "```", *commands, "```", ""]


def write(path, results_path, rows):
    """The page: a table of claims and the details of each row, first of the machine as it is, then limited to AVX2."""
    results = newest(results_path)
    text = INTRODUCTION.format(avx2=settings(ONLY_AVX2))
    ordered = {isa: [results[row.name, isa] for row in rows if (row.name, isa) in results]
               for isa in sorted({isa for _, isa in results}, key=lambda isa: (isa != "native", isa))}
    for isa, some in ordered.items():
        for result in some:
            heading = f"{result['title'].replace('`', '')}, {isa}".lower()
            result["anchor"] = "".join(c for c in heading.replace(" ", "-") if c.isalnum() or c in "-_")
        title = f"All instructions of the machine ({processor()})" if isa == "native" else f"Limited to {isa.upper()}"
        text += f"\n## {title}\n\n" + "\n".join(_summary(some)) + "\n"
    text += "\n## How each row was measured\n\n"
    text += "\n".join(line for some in ordered.values() for result in some for line in _details(result))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")

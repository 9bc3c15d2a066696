"""What may be shown as it stands, or is never shown: (files, function or table, the reason).

A file is named from the root; a name that ends in "/" stands for all below it, "" for any function.
Words that are symbols, units, names of formats or code need no entry: `escaped.words` counts none.
"""

from __future__ import annotations

from collections.abc import Iterable

from book.messages.escaped import Escaped

Excuse = tuple[str, str, str]

EXCUSED: tuple[Excuse, ...] = (
    # developers' and instructors' own command lines
    ("book/against/__main__.py", "", "a developer's command"),
    ("book/messages/", "", "a developer's command"),
    ("book/notebook/sentences.py", "", "a developer's command"),
    ("book/site/browser.py", "", "a developer's command"),
    ("book/site/outputs.py", "", "a developer's command"),
    ("book/site/picture.py", "", "a developer's command"),
    ("book/site/serve.py", "", "a developer's command"),
    ("book/site/vendor.py", "", "a developer's command"),
    ("kernels/measure/", "", "a developer's command"),
    ("kernels/evidence/recorded/limits.py", "", "a developer's command: what is wrong with a record"),
    ("kernels/evidence/recorded/plausible.py", "", "a developer's command: what is wrong with a record"),
    ("kernels/evidence/recorded/provenance.py", "", "a developer's command: what is wrong with a record"),
    ("kernels/evidence/recorded/__main__.py", "", "a developer's command"),
    ("labs/release.py", "", "a developer's command"),
    ("labs/releasing/", "", "a developer's command"),
    ("labs/grading/__main__.py", "", "an instructor's command"),
    ("labs/grading/bubblewrap.py", "", "an instructor's command: what a sandbox lacks"),
    ("labs/grading/classroom.py", "", "an instructor's command"),
    ("labs/grading/collecting.py", "collect", "an instructor's command: what is wrong with a folder"),
    ("labs/grading/container.py", "", "an instructor's command: what a sandbox lacks"),
    ("labs/grading/install_bubblewrap.py", "", "an instructor's command"),
    ("labs/grading/report.py", "summary", "an instructor's command"),
    ("labs/grading/report.py", "_looks", "an instructor's command"),
    ("labs/grading/running_program.py", "HeadAndTail.text", "in what a program printed, for instructors"),
    ("labs/grading/sandbox.py", "find", "an instructor's command: what a sandbox lacks"),
    ("labs/grading/trusted_process.py", "", "an instructor's command"),
    # messages of exceptions, put together before they are raised
    ("book/catalog/", "", "an error in a file of the catalog"),
    ("book/serving/asked.py", "_count", "the message of an exception"),
    ("book/widgets/self_check.py", "problems", "an error in a chapter, for its test"),
    ("book/widgets/choice.py", "problems", "an error in a chapter, for its test"),
    ("book/widgets/slider_trait.py", "Position.validate", "the message of an exception"),
    ("kernels/contract/checks.py", "GROUPED", "the message of an exception"),
    ("kernels/contract/checks.py", "_remedy", "the message of an exception"),
    ("kernels/contract/checks.py", "_convert", "the message of an exception"),
    ("kernels/contract/checks.py", "_sizes", "the message of an exception"),
    ("kernels/evidence/counted/__init__.py", "Counted.check", "the message of an exception"),
    ("kernels/evidence/counted/per_rank.py", "CountedRanks._check_sent", "the message of an exception"),
    ("kernels/evidence/recorded/schema.py", "Field.wrong", "the message of an exception"),
    ("kernels/evidence/recorded/schema.py", "Field._wrong_inside", "the message of an exception"),
    ("kernels/evidence/recorded/schema.py", "_bounded", "the message of an exception"),
    ("kernels/evidence/recorded/schema.py", "_TYPES", "the message of an exception"),
    ("kernels/ranks/failures.py", "", "the message of an exception"),
    ("kernels/evidence/executed/", "", "what is wrong with a kernel, in the message of an exception"),
    ("kernels/", "CONDITIONS", "the message of an exception"),
    ("kernels/gemv.py", "FEW_ROWS", "the message of an exception"),
    ("kernels/tiling/decode.py", "FITS", "the message of an exception"),
    ("book/serving/deployment.py", "possible", "the message of an exception"),
    ("book/serving/deployment.py", "whole_tokens", "the message of an exception"),
    ("book/serving/deployment.py", "room", "the message of an exception"),
    ("book/serving/deployment.py", "_itemsize", "the message of an exception"),
    ("book/serving/deployment.py", "_whole_cards", "the message of an exception"),
    ("labs/kit/lab.py", "find", "the message of an exception"),
    # code that stands alone, without the book beside it
    ("book/portable/unpack.py", "_set_up", "it runs before anything of the book is there"),
    ("labs/kit/run_submitted_code.py", "", "it runs beside foreign code, and nothing of the book with it"),
    # words that others compare with, or that are names
    ("book/formulas/code_generation.py", "RESERVED", "words of JavaScript"),
    ("book/site/extensions/lab_copies.py", "purpose", "what a page's own text begins with"),
    ("book/site/extensions/pages.py", "name_folds", "what the theme writes"),
    ("book/drawing/step_figures.py", "", "where matplotlib puts a key"),
    ("book/drawing/axes.py", "_key", "a name of matplotlib's"),
    ("book/notebook/comparatives.py", "_WORDS", "patterns of the lint of sentences"),
    ("kernels/evidence/record_tables.py", "COMMAND", "what is typed"),
    ("kernels/mlp.py", "launches", "names of launches"),
    ("kernels/flash_attention.py", "QUERY", "axes of a tensor"),
    ("kernels/evidence/timed/torch_products.py", "_fp8", "names of functions of torch's"),
    ("kernels/evidence/timed/dram.py", "main", "what one process tells another"),
    ("kernels/evidence/timed/machine.py", "no_compiler", "a developer's command: what a machine lacks"),
    ("labs/grading/sandbox.py", "", "names of ways to end, and what Python writes"),
    ("labs/grading/variants.py", "ID_COLUMNS", "headings of other people's files"),
    ("labs/kit/run_kernels.py", "said", "what Triton writes"),
    ("labs/kit/question.py", "HEADINGS", "keys, whose words stand beside them"),
    ("labs/lab2_linear/predicted_times.py", "predictions", "a key of labs.kit.question.HEADINGS"),
    ("labs/lab2_linear/wrong_products.py", "said", "what the interpreter writes"),
    # words that a page fills in: their braces have no values here
    ("book/widgets/words.py", "_SHARED", "filled in by the front-end, or by `word`"),
    ("book/widgets/words.py", "_OF_MEMORY", "filled in by the front-end, or by `word`"),
    ("book/widgets/words.py", "_OF_A_VIEW", "filled in by the front-end, or by `word`"),
    ("book/widgets/serve.py", "WORDS", "filled in by the front-end"),
    ("book/widgets/check_words.py", "", "filled in when an answer is judged, here or on the page"),
)


def excuse(one: Escaped) -> Excuse | None:
    """The entry under which this may stand, or None."""
    return next((entry for entry in EXCUSED if _covers(entry, one)), None)


def _covers(entry: Excuse, one: Escaped) -> bool:
    path, where, _ = entry
    inside = one.path.startswith(path) if path.endswith("/") else one.path == path
    return inside and where in ("", one.where)


def unexcused(found: Iterable[Escaped]) -> list[Escaped]:
    """What nobody excuses."""
    return [one for one in found if excuse(one) is None]

"""python -m labs.grading SUBMISSIONS --lab lab2-linear --out grades [--roster roster.csv --secret secret.txt]

Exit status: 0 everybody has a grade; 1 somebody needs a look; 2 nothing was graded, and a sentence says
why. Stopped at any time, even killed, the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from labs import assignments
from labs.grading import classroom, report, sandbox, sandboxed_programs, variants
from labs.grading.collecting import collect
from labs.grading.running_program import SandboxFailed

GRADED, LOOK, NOTHING = 0, 1, 2


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    first, rest = __doc__.split("\n", 1)
    parser = argparse.ArgumentParser("python -m labs.grading", description=rest.strip())
    parser.add_argument("submissions", type=Path, help="the folder with what was handed in")
    parser.add_argument("--lab", required=True, help="which lab, such as lab2-linear or lab2")
    parser.add_argument("--out", type=Path, default=Path("grades"), help="folder for grades (%(default)s)")
    parser.add_argument("--roster", type=Path, help="CSV file of the students' ids, and perhaps names")
    parser.add_argument("--secret", type=Path, help="file with the secret that the variants were made from")
    parser.add_argument("--seed", type=int, help="of the random inputs; kept in OUT, new if not given")
    parser.add_argument("--jobs", type=int, default=classroom.JOBS, help="at the same time (%(default)s)")
    parser.add_argument(
        "--regrade", action="append", default=[], metavar="STUDENT", help='grade again; "all" for everybody'
    )
    parser.add_argument("--trusted", action="store_true", help="run without a sandbox if there is none")
    parser.add_argument("--no-gradebook", action="store_true", help="leave nbgrader's gradebook alone")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Grade a class as told; the exit status."""
    options = arguments().parse_args(words)
    # A submitted cell with an odd escape is its author's affair, not a line on this terminal.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        return _grade(options)
    except (ValueError, OSError, classroom.AlreadyRunning, sandbox.NoSandbox, SandboxFailed) as error:
        print(f"Nothing was graded. {error}", file=sys.stderr)
        return NOTHING
    except KeyboardInterrupt:
        print("\nStopped. Every grade so far is kept; the same command goes on from there.", file=sys.stderr)
        return 130


def _grade(options: argparse.Namespace) -> int:
    if options.jobs < 1:
        raise ValueError(f"jobs = {options.jobs}: give 1 or more.")
    lab = assignments.find(options.lab)
    others = [name for name in assignments.all_assignments() if name != lab.name]
    roster = variants.roster(options.roster) if options.roster else None
    secret = variants.read_secret(options.secret) if options.secret else ""
    handed_in = collect(options.submissions, lab.name, roster, others, options.out)
    if not handed_in:
        raise ValueError(f"submissions = {str(options.submissions)!r}: no notebook of {lab.name} is in it.")
    unknown = {variants.identity(s) for s in options.regrade} - {
        variants.identity(one.student) for one in handed_in
    }
    if unknown - {classroom.EVERYBODY}:
        raise ValueError(f"regrade = {sorted(unknown)}: nobody of that name handed anything in.")
    holder = sandbox.find(trusted=options.trusted)
    print(f"{len(handed_in)} submissions of {lab.name}, run in: {holder.name}.", file=sys.stderr)
    with classroom.locked(options.out, lab.name):
        seed = classroom.seed_of(options.out, lab.name, options.seed)
        course = classroom.Class(lab, options.out, seed, roster, secret)
        runner = sandboxed_programs.runner(holder)
        done = classroom.run(
            course,
            handed_in,
            runner,
            options.jobs,
            options.regrade,
            # An environment without torch would make everybody's code fail.
            check=lambda: sandboxed_programs.alive(runner),
        )
        table = course.folder / "grades.csv"
        report.write_csv(table, lab, done.results, roster, done.failed)
        said = [report.summary(lab, done, roster), "", f"Grades: {table}"]
        looks = bool(done.failed) or any(r.grade.needs_look for r in done.results.values())
        if not options.no_gradebook:
            files = {one.student: one.path for one in handed_in}
            from labs.grading import gradebook

            try:
                said.append(f"nbgrader: {gradebook.write(course, done.results, files)}")
            except gradebook.OtherGradebook as error:
                said.append(f"!! {error}")
                looks = True
    print(os.linesep.join(said))
    return LOOK if looks else GRADED


if __name__ == "__main__":
    status = main()
    gc.freeze()  # all of it ends with the process: it need not be looked through once more
    sys.exit(status)

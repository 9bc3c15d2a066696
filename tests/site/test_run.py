"""`make test` runs every step, whatever fails, and says where the time went."""

from collections import Counter

from tests import run
from tests.run import Done, Step


def called(fails):
    """A stand-in for running commands: those named in `fails` fail; it notes command and environment."""
    seen = []

    def call(command, cwd, env):
        seen.append((command[0], env.get("BUILT") or env.get("GIVEN")))
        return 1 if command[0] in fails else 0

    return call, seen


STEPS = (
    Step("one", (("a",), ("b",)), (("BUILT", "1"),)),
    Step("two", (("c",),)),
)


def test_every_step_runs_even_after_a_failure():
    call, seen = called({"a"})
    done = run.run(STEPS, call)
    assert [(d.name, d.passed) for d in done] == [("one", False), ("two", True)]
    assert seen == [("a", None), ("c", None)], "b needs a; c does not, and is told of no build"


def test_what_a_step_built_is_told_to_those_after_it():
    call, seen = called(())
    run.run(STEPS, call)
    assert seen == [("a", None), ("b", None), ("c", "1")]


def test_what_a_step_is_given_no_other_has():
    call, seen = called(())
    run.run((Step("one", (("a",),), given=(("GIVEN", "2"),)), Step("two", (("b",),))), call)
    assert seen == [("a", "2"), ("b", None)]


def test_the_slowest_files_are_summed_from_pytests_reports(tmp_path):
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase file="tests/a.py" time="1.5"/>'
        '<testcase file="tests/b.py" time="4"/>'
        '<testcase file="tests/a.py" time="0.5"/></testsuite></testsuites>',
        encoding="utf-8",
    )
    assert run.by_file([report, report]) == Counter({"tests/b.py": 8, "tests/a.py": 4})


def test_the_account_names_steps_files_and_failures():
    text = run.account([Done("lint", True, 2.4), Done("site", False, 61)], Counter({"tests/a.py": 30.2}))
    lines = [line.split() for line in text.splitlines()]
    assert ["lint", "2"] in lines and ["site", "(failed)", "61"] in lines and ["all", "63"] in lines
    assert ["tests/a.py", "30"] in lines


def test_a_failed_step_fails_the_whole(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(
        run, "steps", lambda make: (Step("fails", (("false",),)), Step("passes", (("true",),)))
    )
    assert run.main() == 1 and "Failed: fails" in capsys.readouterr().out
    monkeypatch.setattr(run, "steps", lambda make: (Step("passes", (("true",),)),))
    assert run.main() == 0 and "All tests passed." in capsys.readouterr().out


def test_tests_that_time_this_machine_run_alone():
    by_name = {step.name: step.commands[-1] for step in run.steps()}
    assert "not quiet" in by_name["tests"] and "quiet" in by_name["timing tests"]
    assert "-n" not in by_name["timing tests"]
    assert dict(next(step for step in run.steps() if step.name == "tests").given)["OMP_NUM_THREADS"] == "1"

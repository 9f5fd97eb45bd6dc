"""What a lane may write: no other lane's path, no protected one, nothing outside of the tree."""

from __future__ import annotations

from typing import Any

import pytest

from orch.workflows.model.round.facts import LaneFacts, Meeting, PlanFacts
from orch.workflows.rules.scopes import scope_flaws


def lane(name: str, *globs: str, **facts: Any) -> LaneFacts:
    return LaneFacts(id=name, globs=globs or ("src/**",), **facts)


FORMS = {
    "marked as protected": ("=src/**", {}, "begins with `=`", "write `src/**`"),
    "leaves the tree": ("src/../../x", {}, "leaves the tree", "without `..`"),
    "takes away outside": ("!../x", {}, "leaves the tree", "without `..`"),
    "git's own folder": ("**/.GIT/hooks/*", {}, "names .git", "leave it out"),
    "orch's own folder": (".orch/round", {}, "names .orch", "leave it out"),
    "attributes": ("src/.gitattributes", {}, "names .gitattributes", "leave it out"),
    "absolute": ("/etc/passwd", {"idle": (0,)}, "is an absolute path", "from the top of the repository"),
    "home": ("~/x", {"idle": (0,)}, "is an absolute path", "from the top of the repository"),
    "comment": ("#x", {}, "is no glob", "one glob per item"),
    "two lines": ("a\nb", {}, "is no glob", "one glob per item"),
    "nothing": ("/", {}, "is no glob", "one glob per item"),
    "stars": ("src/" + "*" * 1000, {"broken": (0,)}, "three stars in a row", "`**` for folders"),
    "many stars": ("a*" * 17, {}, "more than 16", "`**` for folders"),
    "broken": ("a\\", {"broken": (0,)}, "is no glob", "one glob per item"),
}


@pytest.mark.parametrize(("glob", "facts", "message", "mend"), FORMS.values(), ids=FORMS.keys())
def test_glob_that_no_lane_may_have_is_refused(glob: str, facts: dict[str, Any], message: str, mend: str) -> None:
    found = scope_flaws(PlanFacts(lanes=(lane("a", glob, "ok.py", **facts),)))

    assert [(flaw.where, flaw.warning) for flaw in found] == [(("lanes", 0, "globs", 0), False)]
    assert message in found[0].message
    assert mend in found[0].mend


def test_anchored_glob_of_what_is_there_is_fine() -> None:
    assert scope_flaws(PlanFacts(lanes=(lane("a", "/setup.py", paths=("setup.py",)),))) == ()


def test_glob_that_matches_nothing_is_a_warning() -> None:
    (found,) = scope_flaws(PlanFacts(lanes=(lane("a", "src/**", "scr/new.py", idle=(1,)),)))

    assert (found.where, found.warning) == (("lanes", 0, "globs", 1), True)
    assert "could only create files" in found.message


def test_globs_that_only_take_away_are_refused() -> None:
    (found,) = scope_flaws(PlanFacts(lanes=(lane("a", "!src/x.py"),)))

    assert "none gives any" in found.message


def test_protected_paths_belong_to_no_lane() -> None:
    paths = tuple(f"src/{name}.py" for name in "abcde")

    (found,) = scope_flaws(PlanFacts(lanes=(lane("a", paths=paths, closed=paths[:4]),)))

    assert (found.where, found.warning) == (("lanes", 0, "globs"), False)
    assert "reach 4 protected paths: src/a.py, src/b.py, src/c.py and 1 more" in found.message


def test_lanes_that_match_a_common_path_are_refused_pair_by_pair() -> None:
    three = (lane("a", paths=("x", "y")), lane("b", paths=("z",)), lane("c", paths=("y", "z")))

    found = scope_flaws(PlanFacts(lanes=three))

    assert [flaw.where for flaw in found] == [("lanes", 2, "globs"), ("lanes", 2, "globs")]
    assert "lanes `a` and `c` both match 1 path: y" in found[0].message
    assert "lanes `b` and `c` both match 1 path: z" in found[1].message


def test_new_file_that_two_lanes_could_write_is_a_warning() -> None:
    met = (Meeting(lanes=(0, 1), path="src/x_new.py"),)

    (found,) = scope_flaws(PlanFacts(lanes=(lane("a"), lane("b")), meetings=met))

    assert (found.where, found.warning) == (("lanes", 1, "globs"), True)
    assert "no clean split: lanes `a` and `b` would both match a new file such as src/x_new.py" in found.message

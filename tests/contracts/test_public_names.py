"""The public names of the package: adding or removing one is a decision, made here."""

import pytest

import clew

EXPECTED = [
    "Annotation",
    "Annotations",
    "ClewError",
    "Document",
    "Filters",
    "Graph",
    "Host",
    "Library",
    "Message",
    "Metadata",
    "Problem",
    "Proof",
    "Record",
    "Session",
    "Store",
    "StoredSession",
    "TokenUsage",
    "dump_document",
    "load_document",
    "sessions",
    "verify",
]


def test_the_list_is_as_written_here() -> None:
    assert sorted(EXPECTED) == EXPECTED
    assert list(clew.__all__) == EXPECTED


@pytest.mark.parametrize("name", EXPECTED)
def test_each_name_resolves(name: str) -> None:
    assert getattr(clew, name) is not None
    assert name in dir(clew)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = getattr(clew, "no_such_name")  # noqa: B009 - a checker would refuse the plain form

"""Files of the zoo are whole or absent, and lose no other file."""

import pytest

from zoo.files import write_by, write_text


def test_a_file_that_fails_leaves_the_one_before_and_nothing_else(tmp_path):
    def fails(place):
        place.write_text("half")
        raise OSError("no space left")

    path = tmp_path / "a.json"
    path.write_text("before")
    with pytest.raises(OSError, match="no space left"):
        write_by(path, fails)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_that_name_is_kept_and_nothing_is_left_beside_it(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(OSError, match=r"a\.html"):
        write_text(tmp_path / "a.html", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_writing_loses_no_other_file(tmp_path):
    other = tmp_path / "tmp.a.html"
    other.write_text("mine")
    write_text(tmp_path / "a.html", "text")
    assert other.read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_text("~/a.html", "text")
    assert (tmp_path / "a.html").read_text() == "text"


def test_a_file_for_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "none" / "model.json", "text")
    assert not list(tmp_path.iterdir())

"""Files are whole or absent, and what was there before stays until then."""

import pytest

from zoo.files import write_by


def test_a_file_that_cannot_be_finished_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("before")

    def full_disk(place):
        place.write_text("half")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_by(path, full_disk)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_for_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_by(tmp_path / "none" / "model.json", lambda place: None)
    assert not list(tmp_path.iterdir())

"""`conformance` writes the kit into a folder, and says so where it cannot."""

from rope_viz.cli.main import main


def test_the_kit_is_written_into_a_new_folder(tmp_path, capsys):
    folder = tmp_path / "deep" / "kit"
    assert main(["conformance", "-o", str(folder)]) == 0
    names = {"cases.json", "check_rope.py", "values.bin", "values.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert {line.rsplit("/", 1)[1] for line in capsys.readouterr().out.splitlines()} == names


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path, capsys):
    (tmp_path / "kit").write_text("")
    assert main(["conformance", "-o", str(tmp_path / "kit")]) == 2
    assert str(tmp_path / "kit") in capsys.readouterr().err

"""Progress and output of the scripts that write a page."""

from pages import progress, publish


def test_a_page_is_printed_and_written_only_on_request(tmp_path, capsys):
    publish(["# A page", "", "1"], tmp_path / "PAGE.md", write=False)
    assert not (tmp_path / "PAGE.md").exists()
    publish(["# A page", "", "1"], tmp_path / "PAGE.md", write=True)
    assert (tmp_path / "PAGE.md").read_text() == "# A page\n\n1\n"
    assert capsys.readouterr().out == "# A page\n\n1\n" * 2


def test_without_a_terminal_every_tenth_line_is_printed(capsys):
    for number in range(1, 31):
        progress("run", number, 30)
    assert capsys.readouterr().err == "run 10 of 30\nrun 20 of 30\nrun 30 of 30\n"

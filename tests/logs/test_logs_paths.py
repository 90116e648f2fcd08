"""Which files are meant by files, folders and patterns, and which links are followed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from components.services.logs import find_files


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of logs, beside what must not be read."""
    folder, secret = tmp_path / "logs", tmp_path / "secret"
    (folder / "old").mkdir(parents=True)
    (folder / "a").touch()
    (folder / "old" / "b").touch()
    secret.mkdir()
    (secret / "passwords").touch()
    return folder


def found(*paths: object) -> tuple[list[str], list[str]]:
    """The files, and the links that were left out."""
    links: list[str] = []
    return list(find_files(map(str, paths), tell=links.append)), links


def test_links_out_of_a_folder_are_left_out_and_told(logs: Path) -> None:
    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "old" / "folder").symlink_to("../../secret")
    (logs / "chain").symlink_to("file")
    (logs / "root").symlink_to("/")
    (logs / "beside").symlink_to(logs.parent / "logs2")
    (logs.parent / "logs2").touch()  # its name begins as that of the folder

    files, links = found(logs)

    assert files == [str(logs / "a"), str(logs / "old" / "b")]
    assert sorted(links) == [str(logs / each) for each in ("beside", "chain", "file", "old/folder", "root")]


@pytest.mark.parametrize("pattern", ["*", "**", "**/*", "[a-z]*"])
def test_links_out_of_the_folder_of_a_pattern_are_left_out(logs: Path, pattern: str) -> None:
    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "folder").symlink_to("../secret")
    (logs / "root").symlink_to(logs.parent)

    files, links = found(logs / pattern)

    assert [os.path.realpath(each) for each in files] == [str(logs / "a"), str(logs / "old" / "b")]
    assert {str(logs / each) for each in ("file", "folder", "root")} <= set(links)


def test_links_that_stay_in_the_folder_are_followed(logs: Path) -> None:
    (logs / "current").symlink_to("old/b")
    (logs / "up").symlink_to("old")
    (logs / "old" / "back").symlink_to("..")

    assert found(logs) == ([str(logs / each) for each in ("a", "current", "old/b")], [])


def test_links_that_are_named_are_followed(logs: Path) -> None:
    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "folder").symlink_to(logs.parent / "secret")
    (logs.parent / "secret" / "more").symlink_to(logs / "a")

    files, links = found(logs / "file", logs / "folder")

    assert files == [str(logs / "file"), str(logs / "folder" / "passwords")]
    assert links == [str(logs / "folder" / "more")]


def test_a_path_that_is_no_file_is_left_out_unless_it_is_named(logs: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(logs / "socket"))
    os.mkfifo(logs / "pipe")
    (logs / "broken").symlink_to("nothing")
    files = [str(logs / "a"), str(logs / "old" / "b")]

    assert found(logs) == (files, [])
    assert found(logs / "*") == (files, [])
    assert found(logs / "pipe", logs / "broken") == ([str(logs / "pipe"), str(logs / "broken")], [])


def test_paths_may_be_relative(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (logs / "out").symlink_to("../secret/passwords")
    monkeypatch.chdir(logs)

    assert found(".") == (["a", "old/b"], ["out"])
    assert found("*") == (["a", "old/b"], ["out"])
    assert found("../logs/*") == (["../logs/a", "../logs/old/b"], ["../logs/out"])

"""`manage.py showscript`: a script with the line numbers of Redis' error messages."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from redis import Redis
from redis.exceptions import ResponseError

from components.kit.scripts import Script


def test_its_line_numbers_are_those_of_the_servers_errors(redis: Redis) -> None:
    out = StringIO()
    source = Script("mailboxes/push").source

    call_command("showscript", "mailboxes/push", stdout=out)
    with pytest.raises(ResponseError) as caught:
        redis.eval(source, 0)

    match = re.search(r"user_script:(\d+)", str(caught.value))
    assert match is not None
    shown = out.getvalue().splitlines()[int(match[1]) - 1]
    assert shown == f"{match[1]:>4} {source.splitlines()[int(match[1]) - 1]}"


@pytest.mark.parametrize("name", ["mailboxes/nothing", "nothing/push", "push", "../conf/push"])
def test_a_script_that_does_not_exist_is_an_error(name: str) -> None:
    with pytest.raises(CommandError, match=rf"There is no script {re.escape(name)}\."):
        call_command("showscript", name)

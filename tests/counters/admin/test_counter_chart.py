"""{% counter_chart %}: a chart on any page of the admin, which never takes the page with it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.template import Context, Template
from django.test import RequestFactory
from django.utils.html import strip_tags

from tests.counters.admin.counting import counted


def placed(tag, user=None, **context):
    """What the tag makes of a page that *user* asks for."""
    if user is not None:
        context["request"] = RequestFactory().get("/")
        context["request"].user = user
    return Template("{% load charts %}{% " + tag + " %}").render(Context(context))


def words_of(html):
    return " ".join(strip_tags(html).split())


@pytest.fixture
def reader(db):
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_counter"))
    return user


@pytest.fixture
def colleague(db):
    return User.objects.create_user("colleague", is_staff=True)


def columns(html):
    return re.findall(r'<th scope="col" class="number wrap">(.*?)</th>', html)


def test_a_chart_of_named_counters_can_be_placed(redis):
    counted(redis, "sales", 7)
    counted(redis, "sales-errors", 1)

    counted(redis, "<b>:a", 1)
    counted(redis, "<b>:b", 2)

    html = placed('counter_chart "sales" "sales-errors" span=3600 title=title', title="<script>")
    family = placed("counter_chart '<b>:*' top=1")

    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert columns(html) == ["sales", "sales-errors"]
    assert html.count("<tr data-key=") == 60
    assert columns(family) == ["&lt;b&gt;:b"]


def test_links_need_permission_to_view_counters_and_charts_do_not(redis, reader, colleague):
    counted(redis, "sales", 7)

    for user, link in ((reader, True), (colleague, False), (None, False)):
        html = placed('counter_chart "sales" span=3600', user)
        assert ('href="/admin/components/counter/chart/?counter=sales&amp;span=3600"' in html) is link
        assert ("data-zoom" in html) is link
        assert columns(html) == ["sales"]


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ('counter_chart "sales" precision=7', "No chart of sales: The precision is 7"),
        ('counter_chart "sales" span=0', "it must be at least 1 s"),
        ('counter_chart ""', "A counter cannot be called"),
        ('counter_chart "sales:*" top=0', "The limit is 0"),
        ('counter_chart "sales:*" title="Sales"', "No chart of Sales: nothing was counted in this time."),
        ("counter_chart", "nothing was counted in this time."),
    ],
)
def test_a_sentence_stands_where_a_chart_cannot(redis, tag, said):
    html = placed(tag)

    assert said in words_of(html)
    assert "<svg" not in html


def test_scripts_and_styles_of_charts_carry_the_nonce_of_the_page():
    plain, with_nonce = placed("chart_media"), placed("chart_media", csp_nonce="abc")

    assert "components/charts/charts.css" in plain
    assert '<script type="module" src="/static/components/charts/charts.js">' in plain
    assert with_nonce.count('nonce="abc"') == 2
    assert "nonce" not in plain


@pytest.mark.parametrize(
    ("permissions", "given", "is_shown"),
    [
        (["view_queue", "view_counter"], True, True),
        (["view_queue", "view_counter"], False, False),
        (["view_queue"], True, False),
    ],
    ids=["is shown", "not where tasks are not counted", "not to who may not view counters"],
)
def test_the_queues_page_has_a_chart_of_what_was_counted_of_tasks(
    redis, staff, settings, permissions, given, is_shown
):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": given}
    counted(redis, "tasks:successful", 7)

    html = staff(*permissions).get("/admin/components/queue/").text

    assert ("charts.css" in html) == ("Tasks in slices of 1 min" in words_of(html)) == is_shown
    assert columns(html) == (
        ["tasks:enqueued", "tasks:successful", "tasks:failed", "tasks:retried"] if is_shown else []
    )

"""Run the examples of a page: python -m tests.docs.shop.run PAGE SOCKET FOLDER."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command


def configure(url: str, folder: Path) -> None:
    settings.configure(
        SECRET_KEY="for examples only",
        USE_TZ=True,
        ALLOWED_HOSTS=["*"],
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "django.contrib.staticfiles",
            *(["django_tasks"] if django.VERSION < (6, 0) else []),
            "components",
            "tests.docs.shop.apps.MarketConfig",
        ],
        MIGRATION_MODULES=dict.fromkeys(
            ("admin", "auth", "contenttypes", "sessions", "components", "market")
        ),
        CACHES={
            "default": {
                "BACKEND": "django_redis.cache.RedisCache",
                "LOCATION": url,
                "KEY_PREFIX": "shop",
            }
        },
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "db.sqlite3")}},
        TASKS={"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}},
        ROOT_URLCONF="components.urls",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        STATIC_URL="static/",
        STATIC_ROOT=folder / "static",
    )
    django.setup()
    if not (folder / "db.sqlite3").exists():
        call_command("migrate", run_syncdb=True, verbosity=0)


def create_tables(made: set[type]) -> None:
    """Create the tables of the models that an example has just declared, and add the models to *made*."""
    from django.apps import apps
    from django.db import connection

    there = connection.introspection.table_names()
    for model in set(apps.get_app_config("market").get_models()) - made:
        made.add(model)
        with connection.schema_editor() as editor:
            if model._meta.db_table in there:  # of an earlier declaration
                editor.delete_model(model)
            editor.create_model(model)
        if model.__name__ == "Item":
            store_item(model)


def store_item(model: Any) -> None:
    values = {"name": "Axe", "stock": 3, "price": 100, "owner_id": 1, "seller_id": 1}
    columns = {field.attname for field in model._meta.fields}
    model.objects.create(pk=42, **{name: value for name, value in values.items() if name in columns})


def main(page: Path, url: str, folder: Path) -> None:
    configure(url, folder)
    from django.apps import apps

    from tests.docs.blocks import ROOT, blocks
    from tests.docs.shop import models

    made = set(apps.get_app_config("market").get_models())
    from tests.docs.shop import given

    names = vars(models)  # so that workers can import the tasks that an example declares
    name = page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")
    names.update(given.of_page(name))
    names.update(given.stored_for(name, folder))
    create_tables(made)
    os.chdir(folder)  # where files are that examples name
    os.environ |= {"METRICS_TOKEN": "secret", "TEST_REDIS_URL": url}
    with asyncio.Runner() as runner:
        for block in blocks(page):
            if block.reason is None:
                for _ in block.run(names, runner):
                    create_tables(made)
                check_settings(block, names)


def check_settings(block: Any, names: dict[str, Any]) -> None:
    """Check what an example says of settings, which no running site can be given."""
    from components.conf import Conf, QueueOptions, problems

    given = {name.lower(): value for name, value in names["COMPONENTS"].items()}
    found = list(problems(Conf, given))
    for alias in names["TASKS"].values():
        found += problems(QueueOptions, alias.get("OPTIONS", {}))
    if found:
        raise ValueError(f"{block.page}:{block.line}: {found}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    os._exit(0)  # helpers of given.py may still run

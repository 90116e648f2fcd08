"""
The demo site's settings, from the environment (12-factor).

Without any variable this is a development site: SQLite and the embedded Redis server under var/, mail as files under
var/mail. DEBUG=0 makes it a production site, which refuses to start without a secret key, its host names and a Redis
server of its own; it sends mail by SMTP and expects to be behind TLS. Sessions are in the database, so that the site
keeps working while Redis is away, and can say which parts do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import django
import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from components.locations import places, urls, with_database

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = BASE_DIR / "var"

env = environ.Env()

DEBUG = env.bool("DEBUG", default=True)
SECRET_KEY = env.str("SECRET_KEY", default="django-insecure-for-development-only" if DEBUG else "")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
REDIS_URL = env.str("REDIS_URL", default="")

if not DEBUG:
    needed = {"SECRET_KEY": SECRET_KEY, "ALLOWED_HOSTS": ALLOWED_HOSTS, "REDIS_URL": REDIS_URL}
    if missing := [name for name, value in needed.items() if not value]:
        raise ImproperlyConfigured(
            f"A production site (DEBUG=0) needs {', '.join(missing)} in its environment. The embedded Redis "
            "server is for development; without DEBUG=0 none of these is needed."
        )

# --- Redis ----------------------------------------------------------------------------------------

#: Two environments that share one Redis must have different prefixes.
COMPONENTS: dict[str, Any] = {
    "PREFIX": env.str("COMPONENTS_PREFIX", default="components"),
    "CACHE": "components",
    "PEOPLE": "project.guilds.letters.GuildMates",
    "BOOKS": "project.guilds.books.GuildBooks",
    "BASE_TEMPLATE": "market/base.html",
    "COUNT_SERVICES": True,
    # The demo shows which names people search for and do not find. It stores what they typed.
    "LOG_KERNEL": env.str("LOG_KERNEL", default="auto"),
    # Prometheus asks for /metrics with this token. Without one, nothing is summed up for it.
    "METRICS_TOKEN": env.str("METRICS_TOKEN", default="") or None,
    "METRICS": bool(env.str("METRICS_TOKEN", default="")),
}

if not REDIS_URL:
    from components.embedded import socket_url

    COMPONENTS["EMBEDDED"] = VAR / "redis"
    REDIS_URL = socket_url(COMPONENTS["EMBEDDED"])

#: In that case, REDIS_URL names any node or, better, several nodes with commas between:
#: redis://10.0.0.1,redis://10.0.0.2
REDIS_CLUSTER = env.bool("REDIS_CLUSTER", default=False)
#: host:port,host:port. In that case, REDIS_URL names the service: redis://mymaster/0
REDIS_SENTINELS = env.list("REDIS_SENTINELS", default=[])


def redis_options() -> dict[str, Any]:
    """Return the django-redis options for a single server, a cluster, or a service that Sentinels know."""
    options: dict[str, Any] = {
        "CLIENT_CLASS": "components.cache.Client",
        # The default serializer, pickle, would run code that anyone with write access to the cache has stored there.
        "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
    }
    if REDIS_CLUSTER and REDIS_SENTINELS:
        raise ImproperlyConfigured("REDIS_CLUSTER and REDIS_SENTINELS cannot both be set.")
    if REDIS_CLUSTER:
        options["CLIENT_CLASS"] = "components.cache.ClusterClient"
    if REDIS_SENTINELS:
        options["CLIENT_CLASS"] = "components.cache.SentinelClient"
        options["CONNECTION_FACTORY"] = "components.cache.SentinelConnectionFactory"
        addresses = [address.rpartition(":") for address in REDIS_SENTINELS]
        options["SENTINELS"] = [(host, int(port)) for host, _, port in addresses]
    return options


def cache_url() -> str:
    """Return the database after that of REDIS_URL; on a cluster, whose client has only one, the same database."""
    if REDIS_CLUSTER:
        return str(REDIS_URL)
    return ",".join(map(_beside, urls({"LOCATION": REDIS_URL})))


def _beside(url: str) -> str:
    # A URL that cannot be read has no place; `manage.py check` says what is wrong with it.
    number = next((int(each.database) for each in places({"LOCATION": url}) if each.database.isdecimal()), 0)
    return with_database(url, number + 1 if number < 15 else number - 1)


#: cache.clear() empties a whole database, so the cache has a different database than queues, locks and messages.
CACHE_URL = env.str("CACHE_URL", default="") or cache_url()

CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": CACHE_URL,
        "KEY_PREFIX": f"{COMPONENTS['PREFIX']}:cache",
        "OPTIONS": redis_options(),
    },
    COMPONENTS["CACHE"]: {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": redis_options(),
    },
}

# An empty QUEUES list allows every queue name.
TASKS = {
    "default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": [], "OPTIONS": {"on_commit": True}}
}

# --- The database ---------------------------------------------------------------------------------


def database() -> dict[str, Any]:
    """
    Return the database of DATABASE_URL, or a file under var/. SQLite is configured for several writing processes.
    """
    config: dict[str, Any] = env.db_url("DATABASE_URL", default=f"sqlite:///{quote(str(VAR / 'db.sqlite3'))}")
    if config["ENGINE"] == "django.db.backends.sqlite3":
        if Path(config["NAME"]).parent == VAR:
            VAR.mkdir(exist_ok=True)
        config["OPTIONS"] = {
            # A transaction takes the write lock when it begins. Otherwise, a transaction that reads first and writes
            # later could fail halfway because another has written in between.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            **config.get("OPTIONS", {}),
        }
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- The site -------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "components.control_room.apps.ControlRoomAdminConfig",  # django.contrib.admin, with the control room first
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "csp",
    "components",
    "project.market",
    "project.guilds",
    "project.players",
]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "project.static.static_files",
    # After static_files, so that it counts pages and not their static files.
    "components.middleware.CountRequestsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "project.own_pages.OwnPages",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "components.middleware.RedisUnavailableMiddleware",
]

ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
WSGI_APPLICATION = "project.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "project.market.context_processors.player",
            ]
        },
    }
]

LOGIN_URL = "market:login"
LOGIN_REDIRECT_URL = "market:browse"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en-us"
#: Those that the app has catalogues for. A page in any other would be half English.
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("zh-hans", "简体中文")]
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_USE_FINDERS = DEBUG

# --- Mail -----------------------------------------------------------------------------------------

DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="Fake Game <market@fakegame.example>")
SERVER_EMAIL = DEFAULT_FROM_EMAIL

#: smtp://user:password@host:port, smtp+tls://, smtp+ssl://, filemail:///folder, consolemail://
mail = env.email_url(
    "EMAIL_URL", default=f"filemail:///{quote(str(VAR / 'mail'))}" if DEBUG else "smtp://localhost:25"
)

if django.VERSION < (6, 1):
    EMAIL_BACKEND = mail["EMAIL_BACKEND"]
    EMAIL_FILE_PATH = mail["EMAIL_FILE_PATH"]
    EMAIL_HOST = mail["EMAIL_HOST"]
    EMAIL_PORT = mail["EMAIL_PORT"] or 25
    EMAIL_HOST_USER = mail["EMAIL_HOST_USER"] or ""
    EMAIL_HOST_PASSWORD = mail["EMAIL_HOST_PASSWORD"] or ""
    EMAIL_USE_TLS = mail.get("EMAIL_USE_TLS", False)
    EMAIL_USE_SSL = mail.get("EMAIL_USE_SSL", False)
else:
    option_names = {
        "EMAIL_FILE_PATH": "file_path",
        "EMAIL_HOST": "host",
        "EMAIL_PORT": "port",
        "EMAIL_HOST_USER": "username",
        "EMAIL_HOST_PASSWORD": "password",
        "EMAIL_USE_TLS": "use_tls",
        "EMAIL_USE_SSL": "use_ssl",
    }
    MAILERS = {
        "default": {
            "BACKEND": mail["EMAIL_BACKEND"],
            "OPTIONS": {option: mail[name] for name, option in option_names.items() if mail.get(name)},
        }
    }

# --- The tour -------------------------------------------------------------------------------------

#: Log-ins without passwords, and buttons that kill processes: `manage.py demo` turns them on for what it runs itself.
TOUR = env.bool("TOUR", default=False)
if TOUR:
    if not DEBUG or "EMBEDDED" not in COMPONENTS:
        raise ImproperlyConfigured("TOUR is only for `manage.py demo` with its embedded Redis.")
    INSTALLED_APPS.append("project.tour")
    MIDDLEWARE.append("project.tour.middleware.tour")
    TEMPLATES[0]["OPTIONS"]["context_processors"].append("project.tour.context_processors.tour")
    if mail["EMAIL_BACKEND"].endswith(".filebased.EmailBackend"):
        if django.VERSION < (6, 1):
            EMAIL_BACKEND = "project.tour.mail.BreakableBackend"
        else:
            MAILERS["default"]["BACKEND"] = "project.tour.mail.BreakableBackend"

# --- Security -------------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

#: One switch for the settings that make sense only behind TLS. Turn it off for a production site in a private
#: network.
HTTPS = env.bool("HTTPS", default=not DEBUG)
SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=3600 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=False)
# Subdomains and browsers' preload lists reach beyond this site, so the owner of the domain has to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if env.bool("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- Logging: one format, on stderr ---------------------------------------------------------------

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
#: Of each task that succeeds. The townsfolk of the demo trade all the time, and its log-ins must stay in sight.
TASKS_LEVEL = "WARNING" if TOUR and LOG_LEVEL == "INFO" else LOG_LEVEL
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname:<7} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        **{
            name: {"level": TASKS_LEVEL}
            for name in ("django.tasks", "django_tasks", "components.done", "project.market.tasks")
        },
    },
}

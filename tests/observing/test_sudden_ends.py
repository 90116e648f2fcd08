"""A worker that replaces itself, or leaves with _exit, loses no span and no event, though atexit is skipped then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BEGIN = """
import os
import django
django.setup()
from components.kit.commands.restarting import flush
"""
SPAN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(
    BatchSpanProcessor(ConsoleSpanExporter(), schedule_delay_millis=3_600_000)
)
from components.observing import tracing
with tracing._tracer.start_as_current_span("the last one"):
    pass
"""
EVENT = """
import sentry_sdk
from sentry_sdk.transport import Transport
class Slow(Transport):
    kept = []
    def capture_envelope(self, envelope):
        self.kept.append(envelope.get_event()["message"])
    def flush(self, timeout, callback=None):
        print(*self.kept)
sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=Slow())
from components.observing import sentry
sentry_sdk.capture_message("the last one")
"""
END = """
flush()
os._exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("left", [SPAN, EVENT], ids=["span", "event"])
def test_what_is_not_exported_yet_is_exported_at_a_sudden_end(left: str) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", BEGIN + left + END]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert done.returncode == 3, done.stderr
    assert "the last one" in done.stdout


def test_without_an_sdk_nothing_is_missed() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    code = BEGIN + "from components.observing import sentry, tracing" + END
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (3, "")

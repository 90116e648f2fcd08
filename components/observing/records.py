"""Records of the log that name the running task, and lines of JSON. docs/observing.md has a LOGGING with both."""

import json
import logging
from datetime import UTC, datetime

#: What every record has; all other attributes were passed as `extra`, or are a filter's.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class TaskFilter(logging.Filter):
    """Adds to each record the attributes task and task_id of the running task; they are "" outside of tasks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes, and let the record pass."""
        from components.services.queues import running_task  # Django reads LOGGING before the apps are there

        record.task, record.task_id = running_task() or ("", "")
        return True


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. What is not JSON is written as its repr()."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=repr)

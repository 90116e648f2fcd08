"""Logs: lines of log files, distributed through Redis in chunks and counted exactly once."""

# Read copier.py, stream.py and aggregation.py first, then worker/, then lines/ and traffic/.

from components.services.logs.aggregation import LEASE, PLACES, Aggregation, Chunk, Consumer, Sample
from components.services.logs.blocks import SIZE, Block, Place, Problem, readblocks, readlines
from components.services.logs.copier import PATIENCE, Copier
from components.services.logs.follower import PAUSE, Follower
from components.services.logs.jobs import (
    DEFAULT_JOB,
    MOST_DEAD,
    MOST_WAITING,
    AggregationStatus,
    DeadChunk,
    JobStatus,
    LogWorkerInfo,
    WorkerRecord,
    dead_chunks,
    list_jobs,
    look_at,
    note_job,
    totals_of,
)
from components.services.logs.paths import find_files
from components.services.logs.stream import LIMIT, CopiedFile, LogStatus, LogStream

__all__ = [
    "DEFAULT_JOB",
    "LEASE",
    "LIMIT",
    "MOST_DEAD",
    "MOST_WAITING",
    "PATIENCE",
    "PAUSE",
    "PLACES",
    "SIZE",
    "Aggregation",
    "AggregationStatus",
    "Block",
    "Chunk",
    "Consumer",
    "CopiedFile",
    "Copier",
    "DeadChunk",
    "Follower",
    "JobStatus",
    "LogStatus",
    "LogStream",
    "LogWorkerInfo",
    "Place",
    "Problem",
    "Sample",
    "WorkerRecord",
    "dead_chunks",
    "find_files",
    "list_jobs",
    "look_at",
    "note_job",
    "readblocks",
    "readlines",
    "totals_of",
]

"""The files under deploy/ are right as far as that can be seen without the machines that they are for."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from django.conf import settings
from django.core.management import load_command_class
from django.urls import resolve

from components.embedded import find_server
from components.kit.rights import USERS
from tests.support.programs import NO_SYSTEMD, find_systemd

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = DEPLOY / "systemd"
MANIFESTS = [
    pytest.param(document, id=f"{path.stem}-{document['kind']}-{document['metadata']['name']}")
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def make_certificate(certificate: Path, key: Path) -> None:
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run(["openssl", "req", "-x509", *curve, *subject, *made], check=True, capture_output=True)


def services() -> dict[str, Any]:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())
    return dict(compose["services"])


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container of each workload, with the specification of its pod."""
    for document in (parameter.values[0] for parameter in MANIFESTS):
        pod = document.get("spec", {}).get("template", {}).get("spec")
        for container in pod["containers"] if pod else ():
            yield container, pod


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of manage.py in the files and on the pages, with where it is."""
    for path in UNITS.glob("*.service"):
        for line in re.findall(r"^ExecStart=(.*)$", path.read_text(), re.M):
            yield path.name, shlex.split(line)
    for name, service in services().items():
        yield f"compose {name}", _words(service.get("command", []))
    for container, _pod in containers():
        yield f"kubernetes {container['name']}", container.get("command", [])
    for path in PAGES:
        for line in re.findall(r"^ *(?:\w+=\S+ )*(manage\.py [a-z][^`\n[]*)$", path.read_text(), re.M):
            yield path.name, shlex.split(re.split(r" +[#|>]", line)[0])


def _words(command: str | list[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else command


def test_a_copy_for_a_site_has_its_names_and_no_others(tmp_path: Path) -> None:
    copy = tmp_path / "deploy"
    command = [sys.executable, str(DEPLOY / "for_site.py"), "--host", "play.example", "--package", "play_it"]
    subprocess.run([*command, "--name", "play", str(copy)], check=True)

    made = {path.relative_to(copy).as_posix(): path.read_text() for path in copy.rglob("*") if path.is_file()}
    assert len(made) == len(
        [each for each in DEPLOY.rglob("*") if each.is_file() and each.suffix[:3] != ".py"]
    )
    assert not re.search("fakegame|project", f"{made}")
    assert "play_it.asgi:application" in made["systemd/play-web.service"]
    assert "ALLOWED_HOSTS: play.example\n" in made["kubernetes/config.yaml"]
    for name, folder in (("Play It", "new"), ("play", "deploy")):
        refused = subprocess.run([*command, "--name", name, str(tmp_path / folder)], capture_output=True)
        assert refused.returncode == 2


@pytest.mark.slow
def test_systemd_accepts_the_units_and_finds_little_that_they_may_do(tmp_path: Path) -> None:
    analyze = find_systemd() or pytest.skip(NO_SYSTEMD)
    units = tmp_path / "units"
    shutil.copytree(UNITS, units)
    for path in units.glob("*.service"):
        path.write_text(path.read_text().replace("/srv/fakegame/.venv/bin/python", sys.executable))
    names = [path.name.replace("@.", "@1.") for path in units.glob("fakegame*.*") if path.is_file()]

    done = subprocess.run(
        [analyze, "verify", "--man=no", *names],
        env={"SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
    )

    ours = [line for line in done.stderr.splitlines() if "fakegame" in line]
    assert (done.returncode, ours) == (0, [])
    [common] = UNITS.glob("fakegame-.service.d/*.conf")
    for path in UNITS.glob("*.service"):
        unit = tmp_path / path.name.replace("@", "")
        unit.write_text(f"{path.read_text()}\n{common.read_text()}")
        command = [analyze, "security", "--offline=true", "--threshold=20", str(unit)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{path.name}:\n{done.stdout}{done.stderr}"


def test_the_compose_file_keeps_to_the_specification() -> None:
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    compose = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())

    jsonschema.validate(compose, json.loads(schema.read_text()))

    assert compose["services"].keys() >= {
        "site", "worker", "poller", "rows", "migrate", "acl", "valkey", "postgres", "nginx",
    }  # fmt: skip
    for name, service in compose["services"].items():
        assert service.get("depends_on", {}).keys() <= compose["services"].keys(), name
        mounted = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert {each for each in mounted if each[0] not in "./$"} <= compose["volumes"].keys(), name
        for each in mounted:
            assert not each.startswith("..") or (DEPLOY / "docker" / each).exists(), each


@pytest.mark.parametrize("document", MANIFESTS)
def test_the_manifest_keeps_to_the_schema_of_kubernetes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.34", strict=True)


def test_every_container_has_probes_limits_no_rights_and_longer_to_end_than_its_process_may_take() -> None:
    for container, pod in containers():
        name, command = container["name"], container.get("command", [])
        assert container["livenessProbe"], name
        assert container["resources"]["limits"]["memory"], name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        assert pod["securityContext"]["runAsNonRoot"], name
        shuts_down = "--shutdown-timeout" in command and int(command[command.index("--shutdown-timeout") + 1])
        assert pod["terminationGracePeriodSeconds"] >= (shuts_down or 30) + 15, name
    for path in UNITS.glob("*.service"):
        text = path.read_text()
        timeout = re.search(r"--(?:shutdown-timeout|timeout-graceful-shutdown) (\d+)", text)
        patience = re.search(r"^TimeoutStopSec=(\d+)", text, re.M)
        assert not timeout or (patience and int(patience[1]) >= int(timeout[1]) + 10), path.name


def test_the_probes_of_the_site_ask_for_its_health() -> None:
    [site] = [container for container, _pod in containers() if container["name"] == "site"]

    paths = [site[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness", "startup")]

    assert paths == ["/healthz", "/readyz?without=redis", "/healthz"]
    assert "/healthz" in str(services()["site"]["healthcheck"]["test"])
    assert all(resolve(path.partition("?")[0]) for path in paths)


def test_every_command_exists_and_takes_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(ROOT / "manage.py")])  # runall has its children run the same file
    seen = set()
    for where, words in commands():
        joined = next((shlex.split(word) for word in words if "manage.py " in word), words)
        if "manage.py" not in joined:
            continue
        name, *arguments = joined[joined.index("manage.py") + 1 :]
        arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
        if name not in OF_OTHERS:
            command = load_command_class(OF_DJANGO.get(name, "components"), name)
            try:
                command.create_parser("manage.py", name).parse_args(arguments)
            except BaseException as error:
                raise AssertionError(f"{where}: manage.py {name} {shlex.join(arguments)}: {error}") from error
        seen.add(name)

    assert seen >= {"runworker", "pollqueue", "cacherows", "runall", "acl", "migrate"}


OF_DJANGO = {
    **dict.fromkeys(("migrate", "check", "shell", "showmigrations", "dumpdata", "test"), "django.core"),
    "collectstatic": "django.contrib.staticfiles",
}
#: Commands that are not of this app; a page shows them with words in place of arguments.
OF_OTHERS = {"demo", "loaddemo", "sweepmarket"}


def test_the_image_is_built_in_stages_and_runs_as_nobody_special() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.M)[1:]

    assert len(stages) == 2
    assert "pip install" not in stages[-1]
    assert re.search(r"^USER [1-9]\d*$", stages[-1], re.M)
    assert json.loads(re.findall(r"^CMD (\[.*\])$", stages[-1], re.M)[0])[0] == "python"
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.M):
        assert (ROOT / source).exists(), source
        assert f"!{source}\n" in (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text()


@pytest.mark.slow
def test_the_server_takes_its_configuration_with_tls_and_the_users(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redis import Redis
    from redis.exceptions import AuthenticationError

    from tests.kit.test_rights import written
    from tests.project.test_demo import free_port

    for name in (*USERS, "operator"):
        monkeypatch.setenv(f"REDIS_PASSWORD_{name.upper()}", f"secret-{name}")
    monkeypatch.setitem(settings.CACHES["default"], "KEY_PREFIX", "shop")
    (tmp_path / "users.acl").write_text("\n".join(written()) + "\n")
    make_certificate(tmp_path / "redis.crt", tmp_path / "redis.key")
    shutil.copy(tmp_path / "redis.crt", tmp_path / "ca.crt")
    port = free_port()
    text = "\n".join((DEPLOY / "redis" / name).read_text() for name in ("redis.conf", "tls.conf"))
    text = text.replace("/etc/redis", str(tmp_path)).replace("tls-port 6379", f"tls-port {port}")
    (tmp_path / "redis.conf").write_text(f"{text}\ndir {tmp_path}\n")
    program = request.config.getoption("--redis-server") or shutil.which("redis-server") or find_server()
    server = subprocess.Popen([program, tmp_path / "redis.conf"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        said = ""
        for line in server.stdout:
            said += line
            if "Ready to accept connections" in line:
                break
        assert server.poll() is None, said
        url = f"redis://{{}}@localhost:{port}/0?ssl_ca_certs={tmp_path}/ca.crt".replace("redis:", "rediss:")
        with Redis.from_url(url.format("worker:secret-worker")) as worker:
            assert worker.info("persistence")["aof_enabled"] == 1
        with Redis.from_url(url.format("operator:secret-operator")) as operator:
            assert operator.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        with Redis.from_url(url.format("")) as nobody, pytest.raises(AuthenticationError):
            nobody.ping()
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()

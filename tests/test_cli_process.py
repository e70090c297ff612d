"""The command as a process of its own: exit codes, streams, signals, and `bookrag serve`."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bookrag_fast import errors as e
from bookrag_fast.server import AsyncClient, Client
from conftest import heed_interrupts
from server_helpers import bookrag, command, environment, make_pdf


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with small.pdf and a shelf that has it."""
    folder = tmp_path_factory.mktemp("home")
    make_pdf(folder / "small.pdf")
    done = bookrag("index", "small.pdf", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no terminal, no progress
    assert "small.pdf indexed" in done.stdout
    assert (folder / "shelf").is_dir()
    return folder


def start(home, *args):
    """A running command with pipes, in a session of its own: signals reach it alone."""
    return subprocess.Popen(
        command(*args), cwd=home, env=environment(), text=True, start_new_session=True,
        preexec_fn=heed_interrupts,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def end(process, timeout=30):
    """Output, error output and exit code; never leaves a process behind."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return out, err, process.returncode


# --- exit codes and streams ---


def test_an_answer_from_the_shell(home):
    done = bookrag("ask", "What opens at a pressure of 12 bar?", cwd=home)
    assert done.returncode == 0
    assert "relief valve" in done.stdout
    assert "p. 3" in done.stdout


def test_a_bad_file_is_an_exit_code_not_a_traceback(home, tmp_path):
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"text")
    done = bookrag("index", bad, cwd=home)
    assert done.returncode == e.NotAPdfError.exit_code
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_the_json_of_an_error_is_on_standard_output(home):
    done = bookrag("show", "nowhere", "--json", cwd=home)
    assert done.returncode == e.UnknownBookError.exit_code
    assert json.loads(done.stdout)["error"]["code"] == "unknown_book"
    assert done.stderr == ""


def test_usage_errors_exit_with_2(home):
    assert bookrag("serve", "--port", "99999", cwd=home).returncode == 2


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from bookrag_fast.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'grpc', 'pyarrow', 'onnxruntime', 'pydantic', 'pypdfium2', 'igraph'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert "doctor" in done.stdout


def test_a_closed_pipe_is_quiet(home):
    process = start(home, "show", "small.pdf", "--all")
    process.stdout.close()
    process.stdout = None
    _, err, _ = end(process)
    assert err == ""


def test_text_that_the_terminal_cannot_show_is_no_failure(tmp_path):
    home = tmp_path
    make_pdf(home / "umlaut.pdf", title="Müller → 第3章")
    assert bookrag("index", "umlaut.pdf", cwd=home).returncode == 0
    narrow = {**environment(), "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for args in (["list"], ["list", "--json"], ["ask", "ü", "--book", "Müller → 第3章"]):
        done = subprocess.run(command(*args), cwd=home, env=narrow, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    odd = subprocess.run([*command("search"), b"\xff\xfe"], cwd=home, capture_output=True)
    assert odd.returncode == 0, odd.stderr
    done = bookrag("rm", "umlaut.pdf", cwd=home)
    assert "Müller → 第3章" in done.stdout


def test_progress_is_drawn_on_a_terminal_only_on_standard_error(home, tmp_path):
    make_pdf(tmp_path / "again.pdf", title="Progress")
    ours, theirs = pty.openpty()
    drawn = []

    def read():
        try:
            while data := os.read(ours, 4096):
                drawn.append(data)
        except OSError:  # Linux: the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(
        command("index", tmp_path / "again.pdf", "--json", "-L", tmp_path / "shelf"),
        env={**environment(), "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=60,
    )  # fmt: skip
    os.close(theirs)
    reader.join(10)
    os.close(ours)
    text = b"".join(drawn).decode("utf-8", "replace")
    assert done.returncode == 0, text
    assert "Indexing again.pdf" in text
    assert "parse" in text
    assert "pages" in text
    assert json.loads(done.stdout)["books"][0]["title"] == "Progress"


def test_an_interrupt_ends_quietly_with_130(home):
    process = start(home, "index", "small.pdf", "--password", "-")
    first = process.stderr.read(1)  # the prompt (or getpass's warning): it waits now
    assert first
    process.send_signal(signal.SIGINT)
    out, err, code = end(process)
    assert code == 130
    assert out == ""
    assert "Traceback" not in err


# --- serve ---


class Serving:
    def __init__(self, home, *args):
        self.process = start(home, "serve", "--port", "0", "--json", *args)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.ready = json.loads(line)
        self.target = self.ready["listening"]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return end(self.process)


@pytest.fixture
def serving(home, tmp_path):
    shutil.copytree(home / "shelf", tmp_path / "shelf")
    server = Serving(home, "--allow-path", home, "--library", tmp_path / "shelf")
    yield server
    server.process.kill()
    server.process.communicate()


def test_serve_prints_where_it_listens_and_answers_there(serving, home):
    assert serving.ready["host"] == "127.0.0.1"
    assert serving.ready["port"] > 0
    assert serving.ready["pid"] == serving.process.pid
    with Client(serving.target, timeout=30) as client:
        (book,) = client.books()
        answer = client.ask("What opens at a pressure of 12 bar?", books=[book.id])
        assert answer.citations[0].pages == (3,)
        assert client.add_server_path(str(home / "small.pdf")) == book
    out, err, code = serving.stop()
    assert code == 0, err
    assert out == ""
    assert "Traceback" not in err
    assert "stopped" in err


def test_serve_for_people_prints_one_line(home):
    process = start(home, "serve", "--port", "0")
    assert process.stdout.readline().startswith("bookrag is listening on 127.0.0.1:")
    process.send_signal(signal.SIGINT)
    assert end(process)[2] == 0


def test_sigterm_lets_running_work_finish(serving, tmp_path):
    file = make_pdf(tmp_path / "late.pdf", title="Late")
    steps = []

    def on_step(step):
        if not steps:
            serving.process.send_signal(signal.SIGTERM)
        steps.append(step)

    with Client(serving.target) as client:
        assert client.add(file, progress=on_step, timeout=30).title == "Late"
    assert steps
    _, err, code = end(serving.process)
    assert code == 0, err


def test_watchers_hear_of_the_stop_and_do_not_hold_it_up(serving):
    with grpc.insecure_channel(serving.target) as channel:
        request = health_pb2.HealthCheckRequest(service="bookrag.v1.BookRAG")
        watch = health_pb2_grpc.HealthStub(channel).Watch(request, timeout=30)
        seen = [next(watch).status]
        serving.process.send_signal(signal.SIGTERM)
        seen.append(next(watch).status)
        _, err, code = end(serving.process)
    assert code == 0, err
    response = health_pb2.HealthCheckResponse
    assert seen == [response.SERVING, response.NOT_SERVING]


def test_a_taken_port_is_an_exit_code(serving, home):
    done = bookrag("serve", "--port", serving.ready["port"], "--json", cwd=home)
    assert done.returncode == e.ConfigError.exit_code
    assert json.loads(done.stdout)["error"]["code"] == "config"
    assert "Traceback" not in done.stderr


def test_many_clients_of_a_real_server_agree(serving):
    def ask(_):
        with Client(serving.target, timeout=60) as client:
            return client.search("impeller").__repr__()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(24)))) == 1


async def test_errors_cross_the_process_border_as_themselves(serving, tmp_path):
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"text")
    locked = make_pdf(tmp_path / "locked.pdf", password="secret", title="Locked")
    async with AsyncClient(serving.target, timeout=30) as client:
        with pytest.raises(e.NotAPdfError) as info:
            await client.add(bad)
        assert str(tmp_path) not in str(info.value)
        assert "bookrag-upload" not in str(info.value)
        with pytest.raises(e.EncryptedPdfError):
            await client.add(locked)
        with pytest.raises(e.WrongPasswordError):
            await client.add(locked, password="no")
        with pytest.raises(e.QueryError):
            await client.ask("")
        with pytest.raises(e.BudgetError):
            await client.search("x", budget_tokens=0)
        with pytest.raises(e.DeadlineError):
            await client.ask("x", timeout=0.0)
        assert len(await client.books()) == 1
        book = await client.add(locked, password="secret")
        assert (await client.remove(book.id)).title == "Locked"


# --- streams that are not there ---


def shell(home, line):
    return subprocess.run(
        ["bash", "-c", line, "bash", *command()], cwd=home, env=environment(),
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_closed_streams_are_no_failure(home):
    done = shell(home, '"$@" list <&- >&-')
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(home, '"$@" list --json <&- >&- 2>&-').returncode == 0


@pytest.mark.parametrize("json_option", ["", "--json"])
def test_a_full_disk_behind_the_output_is_told_in_a_line(home, json_option):
    done = shell(home, f'"$@" list {json_option} > /dev/full')
    assert done.returncode == 6
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_password_may_come_through_a_pipe(home):
    done = shell(home, 'echo pw | "$@" index small.pdf --password - --json')
    assert done.returncode == 0
    assert json.loads(done.stdout)["books"][0]["known"]
    none = shell(home, '"$@" index small.pdf --password - --json < /dev/null')
    assert none.returncode == e.InvalidArgumentError.exit_code
    assert json.loads(none.stdout)["error"]["code"] == "invalid_argument"


def test_a_password_that_is_no_text_does_not_open(home):
    done = shell(home, "\"$@\" index small.pdf --password $'\\x80' --json")
    assert done.returncode == 0


def test_a_file_name_cannot_drive_the_terminal(home):
    done = shell(home, "\"$@\" index $'\\e]0;title\\a\\nnext.pdf'")
    assert done.returncode == e.DocumentError.exit_code
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 2  # what is wrong, and the hint

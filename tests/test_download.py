"""Downloads from a server on this machine that cuts, changes, hangs and errs."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request

import google_crc32c
import pytest

from albert_tf import checksums
from albert_tf.download import fetch
from albert_tf.errors import InputError
from albert_tf.http_transfer import new_opener
from tests import loopback
from tests.loopback import Reply

NAME = "model.tar.gz"
V1, V2 = {"ETag": '"v1"'}, {"ETag": '"v2"'}


def archive(seed: int, size: int = 300_000) -> bytes:
    """An archive that is as long as its content, which does not compress."""
    return loopback.archive("albert/model.ckpt-best.index", random.Random(seed).randbytes(size))


def damaged(body: bytes, place: int) -> bytes:
    """The same but for one bit."""
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


BODY, OTHER = archive(1), archive(2, 200_000)
HALF = len(BODY) // 2
SHA256 = hashlib.sha256(BODY).hexdigest()


def crc32c_of(*bodies: bytes) -> list[str]:
    return [f"{google_crc32c.value(body):08x}" for body in bodies]


def md5_of(*bodies: bytes) -> list[str]:
    return [hashlib.md5(body).hexdigest() for body in bodies]


def goog_hash(body: bytes, *kinds: str) -> dict[str, str]:
    """What Google Cloud Storage sends with an object."""
    digests = {"crc32c": crc32c_of(body)[0], "md5": md5_of(body)[0]}
    encoded = [f"{kind}={base64.b64encode(bytes.fromhex(digests[kind])).decode()}" for kind in kinds]
    return {"x-goog-hash": ",".join(encoded)}


@pytest.fixture
def site():
    with loopback.running() as site:
        yield site


class Caller:
    """`fetch` with a clock that only counts, and what it said."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.slept: list[float] = []
        self.warnings: list[str] = []

    def __call__(self, url: str, **options: object) -> bytes:
        options = {"sleep": self.slept.append, "warn": self.warnings.append, "timeout": 5.0, **options}
        path = fetch(url, self.directory, **options)
        assert path == str(self.directory / NAME)
        return pathlib.Path(path).read_bytes()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir() if path.suffix != ".lock")


@pytest.fixture
def get(tmp_path):
    return Caller(tmp_path / "cache")


# ---- a whole download and the cache


def test_a_file_is_fetched_once(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1))
    assert get(url) == BODY
    assert get(url) == BODY
    assert len(site.asked) == 1
    assert site.asked[0].headers["User-Agent"].startswith("albert_tf/")
    assert get.names() == [NAME, f"{NAME}.json"]
    record = json.loads((get.directory / f"{NAME}.json").read_text())
    assert record == {"url": url, "size": len(BODY), "sha256": SHA256}
    assert not get.slept and not get.warnings


def test_the_progress_counts_the_bytes(site, get, capsys):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF), Reply(BODY, headers=V1))
    get(url)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{NAME}: {HALF:,}/{len(BODY):,} B")
    assert lines[1].startswith(f"{NAME}: {len(BODY):,}/{len(BODY):,} B")


def test_a_file_put_by_hand_is_taken_without_asking(site, get):
    get.directory.mkdir()
    (get.directory / NAME).write_bytes(BODY)
    closed = f"http://localhost:{loopback.closed_port()}/{NAME}"
    assert get(closed) == get(closed, sha256=SHA256.upper()) == BODY
    assert json.loads((get.directory / f"{NAME}.json").read_text())["sha256"] == SHA256


@pytest.mark.parametrize("wrong", [BODY[:-1000], b"<html>", b"", damaged(BODY, 5000)])
def test_a_wrong_file_put_by_hand_is_replaced(site, get, wrong):
    get.directory.mkdir()
    (get.directory / NAME).write_bytes(wrong)
    assert get(site.serve(f"/{NAME}", Reply(BODY))) == BODY
    assert len(get.warnings) == 1 and str(get.directory / NAME) in get.warnings[0]


def test_a_damaged_cache_is_replaced(site, get):
    url, path = site.serve(f"/{NAME}", Reply(BODY)), get.directory / NAME
    get(url)
    path.write_bytes(BODY[:-1])
    assert get(url) == BODY
    assert f"{len(BODY) - 1:,} bytes where {len(BODY):,}" in get.warnings[0]
    path.write_bytes(damaged(BODY, HALF))
    assert get(url, verify=True) == BODY
    assert SHA256 in get.warnings[1]
    assert get(url, verify=True) == BODY
    assert len(site.asked) == 3


def test_a_cached_file_of_another_checksum_is_replaced(site, get):
    url = site.serve(f"/{NAME}", Reply(OTHER), Reply(BODY))
    assert get(url) == OTHER
    assert get(url, sha256=SHA256) == BODY
    assert hashlib.sha256(OTHER).hexdigest() in get.warnings[0] and SHA256 in get.warnings[0]


# ---- a cut connection


@pytest.mark.parametrize("headers", [V1, {"Last-Modified": "Wed, 30 Oct 2019 19:00:00 GMT", "ETag": 'W/"v1"'}])
def test_only_the_rest_is_asked_for_after_a_cut(site, get, headers):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=headers, cut_after=HALF), Reply(BODY, headers=headers))
    assert get(url) == BODY
    first, second = site.asked
    assert first.headers["Range"] is None and first.sent == HALF
    assert second.headers["Range"] == f"bytes={HALF}-"
    assert second.headers["If-Range"] == headers.get("Last-Modified", headers["ETag"])
    assert (second.status, second.sent) == (206, len(BODY) - HALF)
    assert get.slept == [1.0] and f"{HALF:,} of {len(BODY):,} bytes" in get.warnings[0]
    assert get.names() == [NAME, f"{NAME}.json"]


@pytest.mark.parametrize(
    "second",
    [
        Reply(BODY, headers=V1, ranges=False),
        Reply(BODY, headers={**V1, "Content-Range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}"}, status=206),
        Reply(BODY, headers=V1, status=206),
    ],
    ids=["ignores Range", "sends another part", "does not say which part"],
)
def test_a_server_without_parts_starts_anew(site, get, second):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF), second, Reply(BODY, headers=V1, ranges=False))
    assert get(url) == BODY
    assert site.asked[1].headers["Range"] == f"bytes={HALF}-"


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"v1"'}])
def test_without_a_validator_nothing_is_pieced_together(site, get, headers):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=headers, cut_after=HALF), Reply(OTHER, headers=headers))
    assert get(url) == OTHER
    assert site.asked[1].headers["Range"] is None


@pytest.mark.parametrize(
    "second",
    [
        Reply(OTHER, headers=V2),
        Reply(bytes(len(BODY)), headers=V2, heeds_if_range=False),
        Reply(BODY[:HALF] + OTHER, headers=V1, heeds_if_range=False),
        Reply(archive(3, 1000), headers=V2, heeds_if_range=False),
    ],
    ids=["If-Range", "ETag", "length", "shorter"],
)
def test_a_file_that_changes_between_the_halves_starts_anew(site, get, second):
    last = Reply(OTHER, headers=V2)
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF), second, last)
    assert get(url) == OTHER
    assert site.asked[1].headers["If-Range"] == '"v1"'


def test_another_address_starts_anew(site, get):
    first = site.serve(f"/a/{NAME}", Reply(BODY, headers=V1, cut_after=HALF))
    second = site.serve(f"/b/{NAME}", Reply(OTHER, headers=V1))
    with pytest.raises(InputError):
        get(first, waits=())
    assert get(second) == OTHER
    assert site.asked[1].headers["Range"] is None


def test_as_many_cuts_as_bring_something(site, get):
    url = site.serve(f"/{NAME}", *[Reply(BODY, headers=V1, cut_after=40_000)] * 20)
    assert get(url, waits=(1.0,)) == BODY
    assert [int((asked.headers["Range"] or "bytes=0-")[6:-1]) for asked in site.asked] == [*range(0, len(BODY), 40_000)]
    assert get.slept == [1.0] * (len(site.asked) - 1)


def test_it_gives_up_when_nothing_new_comes(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, ranges=False, cut_after=HALF))
    with pytest.raises(
        InputError, match=f"{HALF:,} of {len(BODY):,} bytes.*{HALF:,} bytes that came are kept"
    ) as caught:
        get(url)
    assert url in str(caught.value) and str(get.directory / NAME) in str(caught.value)
    assert get.slept == [1.0, 2.0, 4.0, 8.0] and len(site.asked) == 5
    assert f"{NAME}.partial" in get.names() and NAME not in get.names()


def test_a_busy_server_is_asked_again(site, get):
    replies = [Reply(status=503), Reply(status=429), Reply(BODY, headers=V1, cut_after=HALF), Reply(status=500)]
    assert get(site.serve(f"/{NAME}", *replies, Reply(BODY, headers=V1))) == BODY
    assert [asked.status for asked in site.asked] == [503, 429, 200, 500, 206]
    assert get.slept == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("stall_after", [0, HALF])
def test_a_hanging_server_counts_as_cut(site, get, stall_after):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, stall_after=stall_after), Reply(BODY, headers=V1))
    assert get(url, timeout=0.2) == BODY
    assert "nothing for 0.2 s" in get.warnings[0]
    assert site.asked[1].headers["Range"] == (f"bytes={HALF}-" if stall_after else None)


# ---- no connection, no such file, the wrong file


def test_off_line_is_told_at_once(site, get):
    url = f"http://localhost:{loopback.closed_port()}/{NAME}"
    with pytest.raises(InputError, match="no connection") as caught:
        get(url)
    assert url in str(caught.value) and str(get.directory / NAME) in str(caught.value)
    assert not get.slept


def test_a_network_that_goes_away_is_waited_for(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF))
    opener, tries = new_opener(), []

    class Dies(urllib.request.BaseHandler):
        handler_order = 0

        def http_open(self, request):
            tries.append(request)
            if 2 <= len(tries) <= 3:
                raise urllib.error.URLError("Network is unreachable")

    opener.add_handler(Dies())
    assert get(url, opener=opener) == BODY
    assert len(tries) == 4 and "unreachable" in get.warnings[1]


@pytest.mark.parametrize(("status", "words"), [(404, "404 Not Found"), (403, "403 Forbidden"), (204, "204 No Content")])
def test_a_refusal_is_told_at_once(site, get, status, words):
    url = site.serve(f"/{NAME}", Reply(b"<html>", status=status, headers={"Content-Type": "text/html"}))
    with pytest.raises(InputError, match=words) as caught:
        get(url)
    assert url in str(caught.value) and len(site.asked) == 1 and get.names() == []


def test_a_web_page_is_refused_and_spoils_nothing(site, get):
    """What a hotel's network answers to everything."""
    page = Reply(b"<html>log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF), page, Reply(BODY, headers=V1))
    with pytest.raises(InputError, match="text/html"):
        get(url)
    assert get(url) == BODY
    assert site.asked[2].headers["Range"] == f"bytes={HALF}-"


@pytest.mark.parametrize(
    ("reply", "sha256", "words"),
    [
        (Reply(OTHER, headers=V1), SHA256, [SHA256, hashlib.sha256(OTHER).hexdigest()]),
        (Reply(OTHER, headers=goog_hash(BODY, "crc32c")), None, [*crc32c_of(BODY, OTHER)]),
        (Reply(OTHER, headers=goog_hash(BODY, "md5")), None, [*md5_of(BODY, OTHER)]),
        (Reply(b'{"error": "gone"}'), None, ["not a gzip file"]),
        (Reply(b"PK", headers=goog_hash(b"PK", "md5")), None, ["not a gzip file"]),
        (Reply(b""), None, ["not a gzip file"]),
        (Reply(BODY, tells_length=False, cut_after=HALF), None, ["damaged gzip file", "end-of-stream"]),
        (Reply(damaged(BODY, HALF)), None, ["damaged gzip file"]),
    ],
    ids=["sha256", "crc32c", "md5", "json", "zip", "empty", "truncated", "damaged"],
)
def test_a_wrong_file_is_refused_and_removed(site, get, reply, sha256, words):
    url = site.serve(f"/{NAME}", reply)
    with pytest.raises(InputError) as caught:
        get(url, sha256=sha256)
    for word in [url, str(get.directory / NAME), *words]:
        assert word in str(caught.value)
    assert get.names() == [] and len(site.asked) == 1
    site.serve(f"/{NAME}", Reply(BODY, headers=goog_hash(BODY, "crc32c", "md5")))
    assert get(url, sha256=sha256) == BODY


def test_the_checksum_of_the_first_answer_holds_for_the_pieces(site, get):
    first = Reply(BODY, headers={**V1, **goog_hash(BODY, "crc32c", "md5")}, cut_after=HALF)
    url = site.serve(f"/{NAME}", first, Reply(bytes(HALF) + BODY[HALF:-1] + b"!", headers=V1))
    with pytest.raises(InputError, match=crc32c_of(BODY)[0]):
        get(url)


def test_goog_hash_as_the_storage_sends_it():
    """Of the empty object, and of "123456789", whose CRC-32C e3069283 is the published check value."""
    assert checksums.from_goog_hash(["crc32c=AAAAAA==", "md5=1B2M2Y8AsgTpgAmY7PhCfg=="]) == {
        "crc32c": "00000000",
        "md5": hashlib.md5(b"").hexdigest(),
    }
    assert checksums.from_goog_hash(["crc32c=4waSgw==, md5=?, sha9=AAAA"]) == {"crc32c": "e3069283"}


def test_other_files_than_gzip_are_held_against_their_length_alone(site, tmp_path):
    url = site.serve("/my%20vocabulary.model", Reply(b"pieces"))
    assert pathlib.Path(fetch(url, tmp_path)) == tmp_path / "my vocabulary.model"
    assert (tmp_path / "my vocabulary.model").read_bytes() == b"pieces"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "models/base.tar.gz", "https://example.org/", "ftp://host/a.gz"])
def test_what_is_no_address_of_a_file(tmp_path, url):
    with pytest.raises(InputError, match="not the address of a file"):
        fetch(url, tmp_path)


def test_an_address_that_cannot_be_asked_for_is_told_at_once(get):
    with pytest.raises(InputError, match="cannot download http://localhost/my models/model.tar.gz"):
        get("http://localhost/my models/model.tar.gz")
    assert not get.slept


# ---- redirects, proxies, certificates


def test_redirects_are_followed_with_the_range(site, get):
    site.serve("/there", Reply(BODY, headers=V1, cut_after=HALF), Reply(BODY, headers=V1))
    assert get(site.serve(f"/{NAME}", Reply(status=302, headers={"Location": "/there"}))) == BODY
    assert [asked.path for asked in site.asked] == [f"/{NAME}", "/there"] * 2
    assert site.asked[3].status == 206


@pytest.mark.parametrize("target", [f"/{NAME}", "file:///etc/passwd", "ftp://localhost/a"])
def test_redirects_that_lead_nowhere(site, get, target):
    url = site.serve(f"/{NAME}", Reply(status=302, headers={"Location": target}))
    with pytest.raises(InputError, match="cannot download") as caught:
        get(url)
    assert url in str(caught.value) and not get.slept


def test_the_proxy_of_the_environment_is_asked(site, get, monkeypatch):
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "")
    url = f"http://models.invalid/{NAME}"
    site.replies[url] = [Reply(BODY)]
    assert get(url) == BODY
    assert [asked.path for asked in site.asked] == [url]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate for localhost")
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def secure_site(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    with loopback.running(context) as site:
        yield site


def test_https_never_leads_to_http(site, secure_site, certificate, get):
    trusting = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
    opener = new_opener(urllib.request.HTTPSHandler(context=trusting))
    plain = site.serve("/plain", Reply(BODY))
    url = secure_site.serve(f"/{NAME}", Reply(status=302, headers={"Location": plain}))
    with pytest.raises(InputError, match=f"from https to {plain}"):
        get(url, opener=opener)
    assert site.asked == []
    onward = secure_site.serve("/onward", Reply(BODY))
    secure_site.serve(f"/{NAME}", Reply(status=302, headers={"Location": onward}))
    assert get(url, opener=opener) == BODY


def test_http_may_lead_to_https(site, secure_site, certificate, get):
    trusting = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
    target = secure_site.serve("/file", Reply(BODY))
    url = site.serve(f"/{NAME}", Reply(status=301, headers={"Location": target}))
    assert get(url, opener=new_opener(urllib.request.HTTPSHandler(context=trusting))) == BODY


def test_an_unknown_certificate_is_refused(secure_site, get):
    with pytest.raises(InputError, match="certificate is not trusted"):
        get(secure_site.serve(f"/{NAME}", Reply(BODY)))
    assert secure_site.asked == [] and not get.slept


# ---- the disk


def test_a_full_disk_is_told(site, get):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    get.directory.mkdir()
    (get.directory / f"{NAME}.partial").symlink_to("/dev/full")
    with pytest.raises(InputError, match=f"cannot write .*{NAME}.*[Nn]o space"):
        get(site.serve(f"/{NAME}", Reply(BODY)))
    assert not get.slept


def test_a_cache_that_cannot_be_made_is_told(site, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the directory .*file"):
        fetch(site.serve(f"/{NAME}", Reply(BODY)), tmp_path / "file" / "cache")
    assert site.asked == []


# ---- several processes


@contextlib.contextmanager
def downloading(url: str, directory: pathlib.Path):
    """Another process that downloads; it is killed at the end of the block, if it still runs."""
    code = "import sys; from albert_tf.download import fetch; print(fetch(*sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, url, str(directory)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_download_goes_on_in_another_process(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, stall_after=1000), Reply(BODY, headers=V1))
    partial = get.directory / f"{NAME}.partial"
    with downloading(url, get.directory) as process:
        wait_until(lambda: partial.exists() and partial.stat().st_size == 1000)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert get.names() == [f"{NAME}.partial", f"{NAME}.partial.json"]
    assert get(url) == BODY
    assert site.asked[1].headers["Range"] == "bytes=1000-" and site.asked[1].sent == len(BODY) - 1000


def test_a_download_killed_before_its_last_step_needs_no_more_bytes(site, get):
    get.directory.mkdir()
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1))
    (get.directory / f"{NAME}.partial").write_bytes(BODY)
    state = {"url": url, "validator": '"v1"', "size": len(BODY), "hashes": {"md5": hashlib.md5(BODY).hexdigest()}}
    (get.directory / f"{NAME}.partial.json").write_text(json.dumps(state))
    assert get(url) == BODY
    assert site.asked == []


def test_a_partial_file_that_is_too_long_starts_anew(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, cut_after=HALF), Reply(BODY, headers=V1))
    with pytest.raises(InputError):
        get(url, waits=())
    (get.directory / f"{NAME}.partial").write_bytes(BODY + b"more")
    assert get(url) == BODY
    assert [asked.status for asked in site.asked] == [200, 416, 200]


@pytest.mark.parametrize("state", ["", "[1]", "{}", '{"url": 3, "validator": 4, "size": "x", "hashes": []}'])
def test_a_torn_state_starts_anew(site, get, state):
    get.directory.mkdir()
    (get.directory / f"{NAME}.partial").write_bytes(OTHER)
    (get.directory / f"{NAME}.partial.json").write_text(state)
    assert get(site.serve(f"/{NAME}", Reply(BODY, headers=V1))) == BODY


def test_two_processes_download_once(site, get):
    url = site.serve(f"/{NAME}", Reply(BODY, headers=V1, stall_after=HALF), Reply(BODY, headers=V1))
    partial = get.directory / f"{NAME}.partial"
    with downloading(url, get.directory) as first:
        wait_until(lambda: partial.exists() and partial.stat().st_size == HALF)
        with downloading(url, get.directory) as second:
            assert "another process is downloading model.tar.gz" in second.stderr.readline()
            site.closing.set()  # the first is cut, and goes on by itself
            outputs = [process.communicate(timeout=20)[0].strip() for process in (first, second)]
    assert outputs == [str(get.directory / NAME)] * 2
    assert (get.directory / NAME).read_bytes() == BODY
    assert [asked.status for asked in site.asked] == [200, 206]

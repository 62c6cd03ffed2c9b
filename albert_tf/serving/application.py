"""The routes: what is asked, with which limits, and how errors are told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from absl import logging
from aiohttp import web

from albert_tf.serving import page, rest
from albert_tf.serving.backend import Backend, RequestError
from albert_tf.serving.batching import Batcher
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.settings import Settings
from albert_tf.serving.versions import AVAILABLE, UNLOADING, Directory, State, Version, Versions, not_found

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_MODEL = r"/v1/models/{name:[^/:]+}"
_VERSION = r"/versions/{version:[^/:]+}"
_LARGE_BODY = 1 << 16  # is parsed beside the event loop
_LARGE_ANSWER = 1 << 12  # values; is written beside it
_NOT_SERVED = 501
_CLIENT_LEFT = 499  # in metrics alone; nobody is there to be told


class Server:
    """Answers requests for one model.

    Args:
        backend: the model.
        name: that it goes by in addresses.
        settings: the limits.
        directory: where newer versions of it come from; None for none.

    Attributes:
        is_stopping: set it when the server is told to stop: health and status then say so.
        busy: connections with a request at work.
    """

    def __init__(self, backend: Backend, name: str, settings: Settings, directory: Directory | None = None):
        self._backend = backend
        self._name = name
        self._settings = settings
        self._directory = directory
        self._metrics = Metrics(name)
        self.is_stopping = False
        self.busy: set[Any] = set()
        self._versions: Versions | None = None

    def application(self) -> web.Application:
        """The aiohttp application."""
        # A request that is larger is refused while it is read, before all of it is in memory.
        application = web.Application(client_max_size=self._settings.max_body_bytes, middlewares=[self._middleware()])
        application.cleanup_ctx.append(self._with_versions)
        routes = application.router
        for version in ("", _VERSION):
            routes.add_post(f"{_MODEL}{version}:predict", self._predict, name=f"predict{bool(version):d}")
            for verb in ("classify", "regress"):
                routes.add_post(f"{_MODEL}{version}:{verb}", self._not_served)
            routes.add_get(f"{_MODEL}{version}/metadata", self._model_metadata)
            routes.add_get(f"{_MODEL}{version}", self._status)
        routes.add_get("/healthz", self._health)
        for path in ("/metrics", "/monitoring/prometheus/metrics"):
            routes.add_get(path, self._scrape)
        routes.add_get("/", self._page)
        return application

    async def _with_versions(self, application: web.Application) -> Any:
        settings = self._settings

        def make_batcher(backend: Backend) -> Batcher:
            return Batcher(
                backend,
                max_batch_rows=settings.max_batch_rows,
                max_batch_characters=settings.max_row_characters,
                max_wait_seconds=settings.max_wait_seconds,
                max_queued_rows=settings.max_queued_rows,
                observer=self._metrics,
            )

        self._versions = versions = Versions(self._backend, self._name, make_batcher, self._metrics.model)
        del self._backend  # the versions alone decide how long it stays
        watcher = None
        if self._directory is not None and settings.file_system_poll_wait_seconds:
            watching = versions.watch(self._directory, settings.file_system_poll_wait_seconds)
            watcher = asyncio.get_running_loop().create_task(watching)
        yield
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        await versions.close()

    def _middleware(self) -> Any:
        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            start = time.monotonic()
            self._metrics.begin()
            self.busy.add(request.protocol)
            status = 500
            try:
                response = await self._guarded(request, handler)
                status = response.status
                return response
            except asyncio.CancelledError:
                status = _CLIENT_LEFT
                raise
            finally:
                self.busy.discard(request.protocol)
                self._metrics.end(_kind(request), status, time.monotonic() - start)

        return counted

    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RequestError as error:
            response = _error(error.status, error.message)
            if error.status in (408, 413):  # the rest of the body would be read first
                response.force_close()
            if error.status == 503:
                response.headers["Retry-After"] = "1"
            return response
        except web.HTTPRequestEntityTooLarge:
            response = _error(413, f"the body is larger than {self._settings.max_body_bytes:,} bytes")
            response.force_close()
            return response
        except web.HTTPException as error:
            response = _error(error.status, f"{error.reason}: {request.method} {request.path:.100}")
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
            return response
        except Exception:
            logging.exception("a request failed")
            return _error(500, "the server failed: its log tells why")

    async def _predict(self, request: web.Request) -> web.Response:
        self._check_name(request)
        body = await self._body(request)
        with self._of_model.find(request.match_info.get("version")).used() as version:
            return await self._answer(body, version)

    async def _answer(self, body: bytes, version: Version) -> web.Response:
        settings = self._settings
        read = (body, version.backend, settings)
        if len(body) > _LARGE_BODY:
            asked, is_rows = await _beside(rest.read_request, *read)
        else:
            asked, is_rows = rest.read_request(*read)
        try:
            columns = await asyncio.wait_for(version.batcher.answer(asked), settings.answer_seconds)
        except asyncio.TimeoutError as error:
            raise RequestError(504, f"there was no answer within {settings.answer_seconds:g} s") from error
        answer = rest.answer(columns, is_rows, asked.rows)
        if rest.count(columns) > _LARGE_ANSWER:
            return web.Response(body=await _beside(rest.encoded, answer), content_type="application/json")
        return _response(answer)

    async def _not_served(self, request: web.Request) -> web.Response:
        raise RequestError(_NOT_SERVED, "the APIs classify and regress are not served: ask for predict")

    async def _body(self, request: web.Request) -> bytes:
        limit = self._settings.max_body_bytes
        if (request.content_length or 0) > limit:
            raise RequestError(413, f"the body is larger than {limit:,} bytes")
        try:
            return await asyncio.wait_for(request.read(), self._settings.read_seconds)
        except asyncio.TimeoutError as error:
            raise RequestError(408, f"the body did not come within {self._settings.read_seconds:g} s") from error
        except (web.RequestPayloadError, ConnectionError) as error:  # damaged, or its sender has left
            raise RequestError(
                400, f"the body cannot be read: {(str(error).splitlines() or [''])[-1].strip()}"
            ) from error

    @property
    def _of_model(self) -> Versions:
        assert self._versions is not None
        return self._versions

    def _check_name(self, request: web.Request) -> None:
        name, version = request.match_info["name"], request.match_info.get("version")
        if name != self._name:
            raise not_found(name, version, f"there is {self._name}")

    async def _status(self, request: web.Request) -> web.Response:
        self._check_name(request)
        states = self._of_model.find_states(request.match_info.get("version"))
        if self.is_stopping:
            states = {key: State(UNLOADING) if state.name == AVAILABLE else state for key, state in states.items()}
        return _response(rest.status(states))

    async def _model_metadata(self, request: web.Request) -> web.Response:
        self._check_name(request)
        version = self._of_model.find(request.match_info.get("version"))
        return _response(rest.metadata(version.backend, self._name))

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="stopping\n", status=503) if self.is_stopping else web.Response(text="ok\n")

    async def _scrape(self, request: web.Request) -> web.Response:
        text, content_type = self._metrics.text()
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _page(self, request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": page.POLICY, "X-Content-Type-Options": "nosniff"}
        return web.Response(
            text=page.page(self._of_model.current.backend, self._name), content_type="text/html", headers=headers
        )


async def _beside(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def _kind(request: web.Request) -> str:
    """A few words for metrics, whatever the address is."""
    if request.path.endswith(":predict"):
        return "predict"
    return "model" if request.path.startswith("/v1/models/") else "other"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _response(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=_json(value), status=status, content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    return web.Response(body=json.dumps({"error": message}).encode(), status=status, content_type="application/json")

"""The HTTP side: paths and verbs to resources, refusals to `Status` objects."""

from __future__ import annotations

import datetime
import hmac
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman_devcluster.api import discovery, patches, pod_logs, protobuf, watch
from dragoman_devcluster.api.admission import DEFAULT_SERVICE_RANGE, Admission
from dragoman_devcluster.api.crds import CRDS, kind_of
from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.kinds import Registry
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.request import Options, Target, parse_log_options, parse_options, parse_target
from dragoman_devcluster.api.resources import Answer, Resources
from dragoman_devcluster.api.selectors import Predicate, field_selector, label_selector
from dragoman_devcluster.api.store import Event, Store
from dragoman_devcluster.api.subresources import Subresources
from dragoman_devcluster.api.tables import Presentation, presentation

_log = logging.getLogger(__name__)

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")


def utc_now() -> datetime.datetime:
    """The time, aware of its zone."""
    return datetime.datetime.now(datetime.UTC)


def create_app(
    store: Store,
    *,
    token: str | None = None,
    logs: Path | None = None,
    service_range: str = DEFAULT_SERVICE_RANGE,
    clock: Callable[[], datetime.datetime] = utc_now,
) -> Starlette:
    """The API over a store.

    Args:
        store: Where objects live; the namespaces that every cluster has are added to it.
        token: The bearer token that every request has to carry; None accepts every request.
        logs: Where the node writes containers' output: NAMESPACE/POD/CONTAINER.log.
        service_range: The network (CIDR) that Services' cluster IPs are taken from.
        clock: The time, aware of its zone.
    """
    api = Api(store, token, logs, service_range, clock)
    return Starlette(routes=[Route("/{path:path}", api.answer, methods=list(_METHODS))])


class Api:
    """The request handler behind `create_app`."""

    def __init__(
        self,
        store: Store,
        token: str | None,
        logs: Path | None,
        service_range: str,
        clock: Callable[[], datetime.datetime],
    ) -> None:
        self._store = store
        self._token = token
        self._clock = clock
        self._logs = logs
        self._registry = Registry()
        admission = Admission(store, clock, service_range)
        self._resources = Resources(store, admission, clock)
        self._subresources = Subresources(self._resources, token or "")
        store.observe(self._definition_changed)
        for crd in store.listed(CRDS.resource):
            self._registry.add(kind_of(crd))
        self._add_namespaces()

    def _add_namespaces(self) -> None:
        namespaces = self._registry.find("", "v1", "namespaces")
        assert namespaces is not None
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            if self._store.get(namespaces.key("", name)) is None:
                body = {"metadata": {"name": name}}
                self._resources.create(Target(namespaces, "", name), body, Options(), "kube-apiserver")

    def _definition_changed(self, event: Event) -> None:
        if event.key.resource == CRDS.resource:
            change = self._registry.remove if event.type == "DELETED" else self._registry.add
            change(kind_of(event.value))

    async def answer(self, request: Request) -> Response:
        """Answer one request; every refusal is a `Status` object."""
        try:
            self._authenticate(request)
            return await self._route(request)
        except ApiError as error:
            return JSONResponse(error.status(), status_code=error.code)
        except Exception:
            _log.exception("%s %s failed", request.method, request.url.path)
            broken = ApiError("InternalError", "the request has failed; see the log of the server")
            return JSONResponse(broken.status(), status_code=500)

    def _authenticate(self, request: Request) -> None:
        if self._token is None or request.url.path in _OPEN_PATHS:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(token.strip().encode(), self._token.encode())
        if scheme.lower() != "bearer" or not known:
            raise ApiError("Unauthorized", "Unauthorized")

    async def _route(self, request: Request) -> Response:
        path = request.url.path.rstrip("/")
        if path in ("/healthz", "/livez", "/readyz"):
            return PlainTextResponse("ok")
        document = self._document(path)
        if document is not None:
            if request.method not in ("GET", "HEAD"):
                raise ApiError(
                    "MethodNotAllowed", "the server does not allow this method on the requested resource"
                )
            return JSONResponse(document)
        target = parse_target(path, self._registry)
        if target is None:
            raise ApiError("NotFound", "the server could not find the requested resource")
        options = parse_options(request.query_params)
        return await self._serve(request, target, options)

    def _document(self, path: str) -> Object | None:
        match path.strip("/").split("/"):
            case ["version"]:
                return discovery.version_info()
            case ["openapi", "v3"]:
                return discovery.openapi_index(self._registry)
            case ["openapi", "v3", *rest]:
                return discovery.openapi_document(self._registry, "/".join(rest))
            case ["api"]:
                return discovery.core_versions()
            case ["apis"]:
                return discovery.groups(self._registry)
            case ["api", version]:
                return discovery.resources(self._registry, "", version)
            case ["apis", group, version]:
                return discovery.resources(self._registry, group, version)
        return None

    async def _serve(self, request: Request, target: Target, options: Options) -> Response:
        shown = presentation(
            request.headers.get("accept", ""), target.kind, options.include_object, self._clock
        )
        manager = options.field_manager or _agent(request)
        if target.subresource and target.subresource not in discovery.subresources(target.kind):
            raise ApiError(
                "NotFound", f"the embedded API does not serve {target.kind.plural}/{target.subresource}"
            )
        if target.subresource not in ("", "status", "finalize"):
            return await self._subresource(request, target, options, manager)
        match request.method:
            case "GET" | "HEAD" if target.name and not options.watch:
                return _respond(Answer(self._resources.read(target)), shown)
            case "GET" | "HEAD":
                return self._collection(target, options, shown)
            case "POST" if not target.name:
                return _respond(
                    self._resources.create(target, await _json_body(request), options, manager), shown
                )
            case "PUT" if target.name:
                return _respond(
                    self._resources.update(target, await _json_body(request), options, manager), shown
                )
            case "PATCH" if target.name:
                media_type = _media_type(request)
                body = _decoded(await request.body(), media_type)
                return _respond(self._resources.patch(target, body, media_type, options, manager), shown)
            case "DELETE" if not target.subresource:
                return self._delete(target, await _json_body(request, required=False), options, shown)
        raise ApiError("MethodNotAllowed", "the server does not allow this method on the requested resource")

    async def _subresource(
        self, request: Request, target: Target, options: Options, manager: str
    ) -> Response:
        served = self._subresources
        match target.subresource, request.method:
            case "log", "GET":
                return self._log(target, request)
            case "scale", "GET":
                answer = served.read_scale(target)
            case "scale", "PUT" | "PATCH":
                media_type = _media_type(request)
                body = _decoded(await request.body(), media_type)
                answer = served.write_scale(target, body, media_type, options, manager)
            case "binding", "POST":
                answer = served.bind(target, await _json_body(request), options)
            case "token", "POST":
                answer = served.issue_token(target)
            case _:
                raise ApiError(
                    "MethodNotAllowed", "the server does not allow this method on the requested resource"
                )
        return JSONResponse(answer.body, status_code=answer.code)

    def _log(self, target: Target, request: Request) -> Response:
        if self._logs is None:
            raise ApiError("NotFound", "this API was started without a directory of logs")
        pod = self._resources.read(target)
        wanted = parse_log_options(request.query_params)
        path = pod_logs.log_path(self._logs, pod, wanted)
        if not wanted.follow:
            return Response(pod_logs.read(path, wanted), media_type="text/plain")
        key = target.kind.key(target.namespace, target.name)

        def running() -> bool:
            return pod_logs.is_running(self._store.get(key), path.stem)

        return StreamingResponse(pod_logs.follow(path, wanted, running), media_type="text/plain")

    def _selects(self, target: Target, options: Options) -> Predicate:
        by_label = label_selector(options.label_selector)
        by_field = field_selector(options.field_selector, target.kind)
        name = target.name
        return lambda obj: by_label(obj) and by_field(obj) and (not name or obj["metadata"]["name"] == name)

    def _collection(self, target: Target, options: Options, shown: Presentation) -> Response:
        selects = self._selects(target, options)
        if options.watch:
            watched = watch.Watch(target.kind, target.namespace, selects, shown.stream())
            body = watch.lines(self._store, watched, options)
            return StreamingResponse(body, media_type="application/json")
        found = [obj for obj in self._store.listed(target.kind.resource, target.namespace) if selects(obj)]
        return Response(json.dumps(shown.listed(found, self._store.version)), media_type="application/json")

    def _delete(self, target: Target, body: Json, options: Options, shown: Presentation) -> Response:
        sent = body if isinstance(body, dict) else {}
        options = replace(
            options,
            grace_period_s=sent.get("gracePeriodSeconds", options.grace_period_s),
            propagation=sent.get("propagationPolicy") or options.propagation,
            dry_run=options.dry_run or bool(sent.get("dryRun")),
        )
        if target.name:
            return _respond(self._resources.delete(target, options, sent.get("preconditions") or {}), shown)
        selects = self._selects(target, options)
        chosen = [obj for obj in self._store.listed(target.kind.resource, target.namespace) if selects(obj)]
        self._resources.delete_collection(target, options, chosen)
        return Response(json.dumps(shown.listed(chosen, self._store.version)), media_type="application/json")


def _agent(request: Request) -> str:
    """Default field manager: the user agent up to the version."""
    return request.headers.get("user-agent", "unknown").partition("/")[0][:128] or "unknown"


def _respond(answer: Answer, shown: Presentation) -> Response:
    body = answer.body if answer.body.get("kind") == "Status" else shown.single(answer.body)
    return Response(json.dumps(body), status_code=answer.code, media_type="application/json")


async def _json_body(request: Request, *, required: bool = True) -> Json:
    body = await request.body()
    if not body:
        if required:
            raise ApiError("BadRequest", "the body of the request is missing")
        return None
    return _decoded(body, _media_type(request))


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()


def _decoded(body: bytes, media_type: str) -> Json:
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.decode(body)
    if media_type not in ("", "application/json", "application/yaml", *patches.served(custom=False)):
        raise ApiError(
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format ({media_type}) - accepted media types include: "
            "application/json, application/yaml",
        )
    try:
        return json.loads(body)
    except ValueError as broken:
        if not media_type.endswith("yaml"):
            raise ApiError("BadRequest", f"the body is not JSON: {broken}") from None
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as broken:
        raise ApiError("BadRequest", f"the body is not YAML: {broken}") from None

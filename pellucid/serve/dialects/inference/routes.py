"""The Open Inference Protocol (V2), which KServe and Triton's clients speak.

A model has the input ``text`` and the outputs ``translation`` and ``score``. Tensors are JSON, or
binary as in Triton's extension (``binary_tensors``).
"""

from typing import Any, Literal

import pydantic
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from pellucid.core.version import __version__
from pellucid.serve.dialects.inference.binary_tensors import HEAD_LENGTH, write_tensors
from pellucid.serve.http.parsed import ParsedRoute
from pellucid.serve.http.routes import documented
from pellucid.serve.marked import AnsweredText, warnings_header
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import Message, TranslateRequest, TranslateResponse, require_limits
from pellucid.serve.server.body import while_connected
from pellucid.serve.server.errors import FieldProblem, InvalidError, NotFoundError, UnavailableError
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service

_VERSION = "1"


class InferParameters(Message):
    """How to translate, and how to answer."""

    beam_size: int | None = pydantic.Field(default=None, ge=1)
    length_penalty: float | None = pydantic.Field(default=None, ge=-10, le=10)
    max_new_tokens: int | None = pydantic.Field(default=None, ge=1)
    split: bool = True
    """Whether a text is translated sentence by sentence."""
    binary_data_output: bool = False
    """Whether outputs that are not named in ``outputs`` are sent as bytes."""
    priority: int | None = None
    """Ignored: requests are served in turn."""
    timeout: int | None = None
    """Ignored: ``GET /v1/limits`` has the time for an answer."""


class InferTensorParameters(Message):
    """The parameters of a tensor beside its type."""

    content_type: str | None = None
    """Ignored: BYTES are texts in UTF-8."""


class InferInput(Message):
    """The texts to translate."""

    name: Literal["text"]
    shape: list[int] = pydantic.Field(min_length=1, max_length=2)
    """``[n]`` or ``[n, 1]``, for n texts."""
    datatype: Literal["BYTES"]
    data: list[str] | list[list[str]]
    parameters: InferTensorParameters | None = None


class InferOutputParameters(Message):
    """How an output is sent."""

    binary_data: bool | None = None


class InferOutput(Message):
    """An output that is wanted."""

    name: Literal["translation", "score"]
    parameters: InferOutputParameters | None = None


class InferRequest(Message):
    """Texts as one tensor."""

    id: str | None = pydantic.Field(default=None, max_length=200)
    """Returned in the answer."""
    model_name: str | None = pydantic.Field(default=None, max_length=200)
    """Ignored: the address names the model. KServe's own client repeats it here."""
    parameters: InferParameters = InferParameters()
    inputs: list[InferInput] = pydantic.Field(min_length=1, max_length=1)
    outputs: list[InferOutput] = pydantic.Field(default=[], max_length=2)
    """All, if it is empty."""


class InferTensor(Message):
    """One output."""

    name: str
    datatype: str
    shape: list[int]
    data: list[str] | list[float]


class InferResponse(Message):
    """The outputs, one value for each text."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferTensor]


def make_inference_routes(service: Service) -> APIRouter:
    """``/v2``, its health, and metadata, readiness and ``infer`` of each model."""
    router = APIRouter(tags=["Open Inference Protocol"], route_class=ParsedRoute)

    @router.get("/v2", responses=documented())
    async def server_metadata() -> Response:
        """Name, version and extensions of the server."""
        extensions = ["binary_tensor_data"]
        return JSONResponse({"name": "pellucid", "version": __version__, "extensions": extensions})

    @router.get("/v2/health/live", responses=documented())
    async def live() -> Response:
        """Whether the process answers."""
        return JSONResponse({"live": True})

    @router.get("/v2/health/ready", responses=documented())
    async def ready() -> Response:
        """Whether requests are accepted, as ``/readyz`` says it."""
        is_ready = service.readiness() == "ok"
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    add_model_routes(router, service, "/v2/models/{name}")
    add_model_routes(router, service, "/v2/models/{name}/versions/{version}")
    return router


def add_model_routes(router: APIRouter, service: Service, path: str) -> None:
    """Add the routes of a model, with or without a version in their path."""
    # FastAPI names operations by function and path, so that both sets may have the same functions.
    is_versioned = "{version}" in path

    def found(request: Request) -> LoadedModel:
        """The model that the path names. Raises NotFoundError."""
        version = request.path_params.get("version", _VERSION)
        name = request.path_params["name"]
        model = service.find(name).model
        if version != _VERSION:
            raise NotFoundError(f"a model has the version {_VERSION}, got {shown(version)}")
        return model

    @router.get(path, responses=documented(404), include_in_schema=not is_versioned)
    async def model_metadata(name: str, request: Request) -> Response:  # noqa: ARG001
        """The inputs and outputs of a model."""
        return JSONResponse(_metadata(found(request)))

    @router.get(f"{path}/ready", responses=documented(404), include_in_schema=not is_versioned)
    async def model_ready(name: str, request: Request) -> Response:  # noqa: ARG001
        """Whether a model answers, as ``/readyz`` says it."""
        model = found(request)
        if (state := service.readiness()) != "ok":
            raise UnavailableError(f"the server is {state}")
        return JSONResponse({"name": model.place.name, "ready": True})

    @router.post(
        f"{path}/infer",
        response_model=InferResponse,
        response_model_exclude_none=True,
        responses={
            **documented(404, 429, 504),
            200: {"content": {"application/octet-stream": {"schema": {"type": "string"}}}},
        },
        include_in_schema=not is_versioned,
    )
    async def infer(name: str, body: InferRequest, request: Request) -> Response:  # noqa: ARG001
        """Translate the texts of one tensor."""
        model = found(request)
        texts = _texts_of(body.inputs[0])
        wanted = _translate_request(body, model, texts, service)
        answer = await while_connected(request.receive, service.translate(wanted, whole=True))
        return _response(body, model, answer)


def _metadata(model: LoadedModel) -> dict[str, Any]:
    return {
        "name": model.place.name,
        "versions": [_VERSION],
        "platform": "pellucid",
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
        "outputs": [
            {"name": "translation", "datatype": "BYTES", "shape": [-1]},
            {"name": "score", "datatype": "FP64", "shape": [-1]},
        ],
    }


def _texts_of(tensor: InferInput) -> list[str]:
    """The texts, in rows of one or flat. Raises InvalidError if they do not have the shape."""
    texts: list[str] = []
    for row, each in enumerate(tensor.data):
        if not isinstance(each, str) and (len(each) != 1 or len(tensor.shape) == 1):
            rule = f"must be a text for the shape {shown(tensor.shape)}"
            rule = f"must hold one text, got {len(each)}" if len(tensor.shape) == 2 else rule
            raise InvalidError([FieldProblem(f"inputs.0.data.{row}", rule, shown(each))])
        texts += [each] if isinstance(each, str) else each

    if tensor.shape not in ([len(texts)], [len(texts), 1]):
        rule = f"must be [{len(texts)}] or [{len(texts)}, 1] for {len(texts)} texts"
        got = shown(tensor.shape)
        raise InvalidError([FieldProblem("inputs.0.shape", f"{rule}, got {got}", got)])
    return texts


def _translate_request(
    body: InferRequest, model: LoadedModel, texts: list[str], service: Service
) -> TranslateRequest:
    """The request to the service. Raises InvalidError in the names of this protocol."""
    wanted = TranslateRequest(
        text=texts,
        model=model.place.name,
        beam_size=body.parameters.beam_size,
        length_penalty=body.parameters.length_penalty,
        max_new_tokens=body.parameters.max_new_tokens,
        split=body.parameters.split,
    )
    require_limits(
        wanted,
        service.limits,
        lambda name: (
            name.replace("text", "inputs.0.data", 1)
            if name.startswith("text")
            else f"parameters.{name}"
        ),
    )
    return wanted


def _response(body: InferRequest, model: LoadedModel, answer: TranslateResponse) -> Response:
    values: dict[str, tuple[str, list[str] | list[float]]] = {
        "translation": ("BYTES", [each.text for each in answer.translations]),
        "score": ("FP64", [each.score for each in answer.translations]),
    }
    # A name that is wanted twice is sent once.
    named: dict[str, InferOutput | None] = {each.name: each for each in body.outputs}
    wanted = named or dict.fromkeys(values)
    is_binary = body.parameters.binary_data_output
    binary: dict[str, list[str] | list[float]] = {}
    outputs: list[dict[str, Any]] = []
    for name, output in wanted.items():
        datatype, data = values[name]
        outputs.append({"name": name, "datatype": datatype, "shape": body.inputs[0].shape})
        own = None if output is None or output.parameters is None else output.parameters.binary_data
        if is_binary if own is None else own:
            binary[name] = data
        else:
            outputs[-1]["data"] = data

    table: dict[str, Any] = {"model_name": model.place.name, "model_version": _VERSION}
    if body.id is not None:
        table["id"] = body.id
    table["outputs"] = outputs
    headers = warnings_header(list(map(AnsweredText.of, answer.translations)))
    if not binary:
        return JSONResponse(table, headers=headers)
    content, head_length = write_tensors(table, binary)
    headers[HEAD_LENGTH] = str(head_length)
    return Response(content, headers=headers, media_type="application/octet-stream")

"""The Open Inference Protocol (V2): tensors in JSON or in bytes after it, and ``error``."""

from pellucid.serve.dialects import Dialect
from pellucid.serve.dialects.inference.binary_tensors import read_tensors
from pellucid.serve.dialects.inference.routes import make_inference_routes
from pellucid.serve.schema import text_bounds
from pellucid.serve.server.errors import ErrorForm
from pellucid.serve.server.rules import OPEN, Rulebook, Rules
from pellucid.serve.service import Service

RULES = Rulebook(
    exact={"/v2/health/live": OPEN, "/v2/health/ready": OPEN},
    beginnings={
        "/v2/models/": Rules(read=read_tensors, errors=ErrorForm("error", invalid_status=400))
    },
)


def inference(service: Service) -> Dialect:
    """All of it."""
    limits = service.limits
    return Dialect(
        [make_inference_routes(service)],
        RULES,
        bounds={
            ("InferInput", "data"): text_bounds(limits),
            ("InferParameters", "beam_size"): {"maximum": limits.max_beam_size},
            ("InferParameters", "max_new_tokens"): {"maximum": limits.max_new_tokens},
        },
        examples=lambda sample: {
            "/v2/models/{name}/infer": {
                "inputs": [
                    {"name": "text", "shape": [1], "datatype": "BYTES", "data": [sample.text]}
                ]
            }
        },
    )

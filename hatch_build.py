"""Puts a bill of materials into the wheel (PEP 770), in CycloneDX's format.

The wheel holds our own code alone: what it needs is listed with its range of versions, and none of
it lies inside. Equal sources give equal bytes: no time, no random number.
"""

import json
import re
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
"""The namespace of URLs (RFC 9562), for a number that only name and version decide."""


class BillOfMaterials(BuildHookInterface):  # type: ignore[type-arg]  # its configs have no type
    """Adds ``pellucid.cdx.json`` to ``.dist-info/sboms``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write the file into a folder that lives as long as the build."""
        self._folder = TemporaryDirectory()
        path = Path(self._folder.name) / f"{self.metadata.name}.cdx.json"
        text = json.dumps(self._document(), indent=1, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the folder."""
        self._folder.cleanup()

    def _document(self) -> dict[str, Any]:
        core = self.metadata.core
        ours = f"pkg:pypi/{core.name}@{self.metadata.version}"
        needed = {_name(line): ("required", line) for line in core.dependencies}
        for lines in core.optional_dependencies.values():
            for line in lines:
                needed.setdefault(_name(line), ("optional", line))
        needed.pop(core.name, None)  # an extra that holds others

        return {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, ours)}",
            "version": 1,
            "metadata": {
                "component": {
                    "bom-ref": ours,
                    "type": "library",
                    "name": core.name,
                    "version": self.metadata.version,
                    "description": core.description,
                    "licenses": [{"expression": core.license_expression}],
                    "purl": ours,
                },
            },
            "components": [
                {
                    "bom-ref": f"pkg:pypi/{name}",
                    "type": "library",
                    "name": name,
                    "purl": f"pkg:pypi/{name}",
                    "scope": scope,
                    "properties": [
                        {"name": "pellucid:requirement", "value": line},
                        {"name": "pellucid:inside-this-wheel", "value": "no"},
                    ],
                }
                for name, (scope, line) in sorted(needed.items())
            ],
            "dependencies": [
                {"ref": ours, "dependsOn": [f"pkg:pypi/{name}" for name in sorted(needed)]}
            ],
        }


def _name(requirement: str) -> str:
    """The normalized name at the beginning of a requirement (PEP 508)."""
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()

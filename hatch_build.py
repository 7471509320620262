"""Metadata that hang on where the project is published: its addresses and the README of the wheel (``places.toml``)."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?![a-z]+:|#)[^)]+)\)")


def readme_for_an_index(text: str, places: dict[str, str]) -> str:
    """Return a README whose relative links lead to the repository; where there is none, only their words stay."""
    repository = places["repository"].rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        if not repository:
            return "" if link["image"] else link["text"]
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({repository}/{kind}/{places['branch']}/{link['target']})"

    return RELATIVE_LINK.sub(absolute, text)


class PlacesHook(MetadataHookInterface):
    """Fill in ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write the metadata that are declared dynamic in pyproject.toml."""
        root = Path(self.root)
        places = tomllib.loads((root / "places.toml").read_text(encoding="utf-8"))
        urls = {"Source": "repository", "Documentation": "documentation", "Issues": "issues"}
        metadata["urls"] = {label: places[name] for label, name in urls.items() if places[name]}
        text = readme_for_an_index((root / "README.md").read_text(encoding="utf-8"), places)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

"""The models that a page offers, and the host that runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from specviz.core.settings import Settings
from specviz.host.models import ModelHost
from specviz.setup import catalog, validation
from specviz.setup.builder import Builder
from specviz.setup.catalog import CatalogEntry
from specviz.store import workspace


class Catalog(Protocol):
    """What a page needs: the models to choose from, and their host. Tests have their own."""

    def targets(self) -> list[CatalogEntry]:
        """Target models that can be chosen."""
        ...

    def drafts(self, target: str) -> list[CatalogEntry]:
        """Drafts that can be chosen for a target."""
        ...

    def make_host(self) -> ModelHost:
        """A new owner of all models."""
        ...

    def check(self, settings: Settings) -> None:
        """Refuse unknown names before any work."""
        ...

    def benchmark_folder(self) -> Path:
        """Where benchmarks are saved."""
        ...


class AppCatalog:
    """The catalog of the real page."""

    def targets(self) -> list[CatalogEntry]:
        """Target models that can be chosen."""
        return catalog.targets()

    def drafts(self, target: str) -> list[CatalogEntry]:
        """Drafts that can be chosen for a target."""
        return catalog.drafts(target)

    def make_host(self) -> ModelHost:
        """A new owner of all models."""
        return ModelHost(Builder, validation.check)

    def check(self, settings: Settings) -> None:
        """Refuse unknown names before any work."""
        validation.check(settings)

    def benchmark_folder(self) -> Path:
        """Where the page saves benchmarks."""
        return workspace.benchmark_folder()

"""Notebooks that are open; Jupyter calls them sessions. Each is a name that a kernel is given.

Nothing of a notebook is kept here but its name: its cells are the client's.
"""

import uuid
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from divingbell.principal import Principal
from divingbell.surfaces.http.jupyter.kernel import Kernel
from divingbell.surfaces.http.jupyter.kernels import Kernels

Text = Annotated[str, msgspec.Meta(max_length=1024)]


class KernelWish(msgspec.Struct):
    """The kernel that a notebook shall have: one that is there, or a new one."""

    name: Text | None = None
    id: Text | None = None


class NotebookWish(msgspec.Struct):
    """A notebook that a client opens, or what it changes about one."""

    path: Text | None = None
    name: Text | None = None
    type: Text | None = None
    kernel: KernelWish | None = None


@dataclass(frozen=True, slots=True)
class Notebook:
    """A name that a client has given a kernel."""

    id: str
    kernel: str
    """The kernel's name."""
    path: str = ""
    name: str = ""
    type: str = "notebook"

    def model(self, kernel: Kernel) -> dict[str, Any]:
        """Return it as Jupyter lists it."""
        return {
            "id": self.id,
            "path": self.path,
            "name": self.name,
            "type": self.type,
            "kernel": kernel.model(),
            "notebook": {"path": self.path, "name": self.name},
        }


class Notebooks:
    """The notebooks of all users. One goes with its kernel; a kernel has one at a time."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._notebooks: dict[tuple[str, str], Notebook] = {}
        """By the user and the name of the kernel. A user has so many kernels and no more."""

    def of(self, principal: Principal) -> list[tuple[Notebook, Kernel]]:
        """Return the principal's notebooks, with their kernels."""
        kernels = {kernel.name: kernel for kernel in self._kernels.of(principal)}
        found = []
        for key in [key for key in self._notebooks if key[0] == principal.user]:
            kernel = kernels.get(key[1])
            if kernel is None:
                del self._notebooks[key]
            else:
                found.append((self._notebooks[key], kernel))
        return found

    def find(self, principal: Principal, identifier: str) -> tuple[Notebook, Kernel] | None:
        """Return the principal's notebook of that id, if there is one."""
        return next((each for each in self.of(principal) if each[0].id == identifier), None)

    def open(self, principal: Principal, wish: NotebookWish, kernel: Kernel) -> Notebook:
        """Name a kernel after a notebook. The same notebook keeps its id."""
        known = next((each for each, _ in self.of(principal) if each.kernel == kernel.name), None)
        before = known or Notebook(str(uuid.uuid4()), kernel.name)
        return self._keep(principal, _renamed(before, wish))

    def change(
        self, principal: Principal, notebook: Notebook, wish: NotebookWish, kernel: Kernel
    ) -> Notebook:
        """Give a notebook another name, or another kernel."""
        del self._notebooks[principal.user, notebook.kernel]
        return self._keep(principal, replace(_renamed(notebook, wish), kernel=kernel.name))

    def _keep(self, principal: Principal, notebook: Notebook) -> Notebook:
        self._notebooks[principal.user, notebook.kernel] = notebook
        return notebook


def _renamed(notebook: Notebook, wish: NotebookWish) -> Notebook:
    return replace(
        notebook,
        path=notebook.path if wish.path is None else wish.path,
        name=notebook.name if wish.name is None else wish.name,
        type=notebook.type if wish.type is None else wish.type,
    )

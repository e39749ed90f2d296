"""Runs the cells of a notebook in a sealed kernel, and keeps what they show in the notebook.

DIVINGBELL_TOKEN=… python run_notebook.py http://127.0.0.1:8642 dive.ipynb
"""

import os
import sys

import nbformat
from jupyter_kernel_client import JupyterKernelClient


def main(server: str, path: str) -> int:
    """Run the cells in their order, up to the first that fails."""
    notebook = nbformat.read(path, as_version=4)
    status = "ok"
    token = os.environ["DIVINGBELL_TOKEN"]
    with JupyterKernelClient(server_url=f"{server}/jupyter", token=token) as kernel:
        for cell in notebook.cells:
            if cell.cell_type == "code" and status == "ok":
                ran = kernel.execute(cell.source, timeout=600)
                cell.outputs = nbformat.from_dict(ran["outputs"])
                cell.execution_count = ran["execution_count"]
                status = ran["status"]
    nbformat.write(notebook, path)
    if status != "ok":
        print(f"a cell failed: {path} has its error", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)

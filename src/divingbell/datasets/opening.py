"""A dataset server made of its parts: the cache, the spool, the sealed sessions."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from divingbell.app import Divingbell
from divingbell.datasets.cache import Cache
from divingbell.datasets.datasets import Datasets
from divingbell.datasets.personal_columns import PersonalColumns
from divingbell.datasets.sealed_reader import SealedReader, settings_for
from divingbell.datasets.server import DatasetServer
from divingbell.datasets.spool import Spool
from divingbell.errors import ConfigError
from divingbell.gateway.spooled_tables import VARIABLE
from divingbell.host import owned_folder, profile
from divingbell.host.folders import HostFolders
from divingbell.settings.config import Settings


@contextlib.asynccontextmanager
async def opened(
    folder: Path,
    settings: Settings,
    *,
    spool: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> AsyncIterator[tuple[DatasetServer, Divingbell]]:
    """Open the dataset server of a folder, while its sandbox still starts.

    `spool` is a folder of the gateway that started it, which takes tables from there as files.
    Without one it has a spool of its own, and no client hears of files.

    Raises:
        ConfigError: the folder can't be used.
        DivingbellError: the sandbox can't be used.
    """
    folder = _checked(folder)
    cache = Cache(profile.home(), folder)
    with contextlib.ExitStack() as afterwards:
        if spool is not None:
            if not owned_folder.check(spool):
                raise ConfigError(f"there is no folder {spool} for results")
            place = spool
        else:
            own = HostFolders(profile.home() / "spools")
            afterwards.callback(own.close)
            place = own.path
        made = Spool(place)
        sealed = settings_for(settings, folder, cache.tables)
        async with Divingbell.of(sealed, progress=progress).starting() as bell:
            personal = PersonalColumns.told_in(place)
            datasets = Datasets(folder, SealedReader(bell), cache, made, personal)
            yield DatasetServer(datasets, made, names_files=spool is not None), bell


def given_spool(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the spool of the gateway that has started this process, if one has."""
    given = environment.get(VARIABLE)
    return Path(given) if given else None


def _checked(folder: Path) -> Path:
    try:
        found = folder.expanduser().resolve(strict=True)
        os.scandir(found).close()
    except NotADirectoryError:
        raise ConfigError(f"{folder} is a file: name the folder that it lies in") from None
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"the folder {folder} can't be used: {reason}") from None
    return found

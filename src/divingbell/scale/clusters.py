"""The clusters that there are, by the word that settings have for them. There is one."""

from divingbell.scale.cluster import Cluster
from divingbell.settings.config import Settings


def cluster_of(settings: Settings) -> Cluster:
    """Return the cluster that the settings name, not started yet.

    Raises:
        ConfigError: it is not installed, or can't be used as it is set up.
    """
    # Here, because it takes two seconds to load.
    from divingbell.scale import ray

    return ray.cluster_of(settings)

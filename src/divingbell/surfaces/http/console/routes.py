"""The routes of the console."""

from starlette.routing import Route

from divingbell.surfaces.http.console.cage import Cage
from divingbell.surfaces.http.console.login import Login, Logout
from divingbell.surfaces.http.console.page import Assets, Page
from divingbell.surfaces.http.service import Service

OPEN_PATHS = frozenset({"/", "/login", "/logout"})
"""What is answered without a token: the page holds nothing of anybody's."""
OPEN_BELOW = ("/assets/",)


def routes(service: Service) -> list[Route]:
    """Return the routes of the console."""
    return [
        Route("/", Page(), methods=["GET"]),
        Route("/assets/{name}", Assets(), methods=["GET"]),
        Route("/login", Login(service), methods=["POST"]),
        Route("/logout", Logout(service), methods=["POST"]),
        Route("/outputs/{source}/{event}/{number}", Cage(service), methods=["GET"]),
    ]

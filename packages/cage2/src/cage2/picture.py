"""One game as a picture: the map of the network, with who holds what, decoys, and what the agents did last."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.rules.scenario import GATEWAYS, HOSTS, NOWHERE, RED_SLEEP, SUBNETS, SWEEP
from cage2.rules.state import REDS, decoys_of
from cage2.words import RED_TAGS, describe_red_action

Image = NDArray[np.uint8]
Color = tuple[int, int, int]
HEIGHT, WIDTH, TOP = 730, 1290, 52
"""Pixels; `TOP` is above the map, for what the agents did."""
SCALE: Final = 1.5
"""Pixels for a unit of the map's coordinates below."""
CARD: Final = (112, 58)
ZONES: Final = {"User": (8, 8, 276, 436), "Enterprise": (302, 8, 270, 436), "Operational": (590, 8, 262, 436)}
"""x, y, width and height."""
CARDS: Final = {
    "User0": (20, 198), "User1": (160, 48), "User2": (160, 140), "User3": (160, 256), "User4": (160, 348),
    "Enterprise0": (312, 302), "Enterprise1": (312, 94), "Enterprise2": (450, 198), "Defender": (450, 348),
    "Op_Server0": (600, 198), "Op_Host0": (730, 72), "Op_Host1": (730, 198), "Op_Host2": (730, 324),
}  # fmt: skip
"""Upper left corners."""
GATE: Final = (581, 227, 9)
"""Centre and radius."""
WIRES: Final = (
    ("User1", "Enterprise1"), ("User2", "Enterprise1"), ("User3", "Enterprise0"), ("User4", "Enterprise0"),
    ("Enterprise2", "Op_Server0"),
)  # fmt: skip
"""Escalation on the first host reveals the address of the second."""
MOST_DECOYS: Final = 4
"""On a card; each is the first two letters of its name."""
ROLES: Final = {"User0": "foothold", "Defender": "monitor"}

PAGE, SURFACE, SUNKEN, INK, MUTED = (251, 251, 250), (255, 255, 255), (243, 243, 241), (26, 27, 30), (91, 94, 102)
LINE, EDGE = (228, 228, 224), (132, 135, 142)
BLUE, GREEN, RED = (11, 92, 173), (0, 105, 75), (178, 58, 10)
YELLOW, BROWN, PALE_BLUE = (255, 212, 102), (122, 82, 0), (232, 241, 251)
LEVELS: Final = (  # fill of the card, border, badge, letter, its colour: untouched, ports known, user, privileged
    (SURFACE, EDGE, SURFACE, "", INK),
    ((236, 238, 241), EDGE, SURFACE, "s", MUTED),
    ((255, 248, 227), BROWN, YELLOW, "U", (58, 42, 0)),
    ((253, 238, 232), RED, RED, "P", SURFACE),
)

GLYPHS: Final = np.frombuffer(
    bytes.fromhex(
        "000000000000005f00000007000700147f147f14242a7f2a12231308646236495620500008070300001c2241000041221c00"
        "2a1c7f1c2a08083e080800807030000808080808000060600020100804023e5149453e00427f400072494949462141494d33"
        "1814127f1027454545393c4a4949314121110907364949493646494929 1e0000140000004034000000081422411414141414"
        "00412214080201590906 3e415d594e7c1211127c7f494949363e414141227f4141413e7f494949417f090909013e41415173"
        "7f0808087f00417f41002040413f017f081422417f404040407f021c027f7f0408107f3e4141413e7f090909063e4151215e"
        "7f09192946264949493203017f01033f4040403f1f2040201f3f4038403f63140814630304780403615949 4d43007f414141"
        "020408102000 4141417f040201020440404040400003070800205454784 07f284444383844444428384444287f3854545418"
        "00087e090218a4a49c787f0804047800447d40002040403d007f1028440000417f40007c047804787c08040478384444 4438"
        "fc1824241818242418fc7c08040408485454542404043f44243c4040207c1c2040201c3c4030403c44281028444c9090907c"
        "4464544c44".replace(" ", "")
    ),
    np.uint8,
).reshape(-1, 5)
"""Columns of five by eight pixels for the characters from space to z; the lowest bit is the top."""


def draw_game(games: NDArray[np.void], index: int, blue: str = "") -> Image:
    """The map of a game [730, 1290, 3] after a step in which blue did this, such as `Restore User3`."""
    game = games[index]
    image = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    image[:] = PAGE
    verb, target = int(game["red_verb"]), int(game["red_target"])
    green = "" if game["green_target"] == NOWHERE else HOSTS[game["green_target"]]
    blue_host = blue.rpartition(" ")[2]
    red_host = HOSTS[target] if verb not in (RED_SLEEP, SWEEP) and target < len(HOSTS) else ""
    write(image, 12, 8, f"step {game['steps']}", INK)
    write(image, 150, 8, f"blue: {blue or 'nothing yet'}", BLUE)
    write(image, 720, 8, f"green: {f'Scan {green}' if green else 'Sleep'}", GREEN)
    write(image, 150, 31, f"red, {REDS[game['red']]}: {describe_red_action(game)}", RED)
    opened = bool(int(game["held"]) & GATEWAYS)
    _subnets(image, SUBNETS[target] if verb == SWEEP and target != NOWHERE else "", opened)
    for one, other in WIRES:
        (x, y, width, height), (to_x, to_y, *_) = (_pixels(*CARDS[host], *CARD) for host in (one, other))
        line(image, (x + width, y + height // 2), (to_x, to_y + height // 2), EDGE, 2)
    _gate(image, opened)
    if red_host and red_host != "User0":
        arrow(image, _route(red_host), RED, dashed=game["red_success"] == 0)
    decoys = decoys_of(games, index)
    for h, host in enumerate(HOSTS):
        access = (int(game["held"]) >> h & 1) + (int(game["owned"]) >> h & 1)
        level = access + 1 if access else int(bool(game["known_ports"][h]))
        _card(image, host, level, decoys.get(host, []), host == blue_host)
        verbs = (
            (blue.split(" ")[0].lower() if host == blue_host else "", BLUE),
            ("scan" if host == green else "", GREEN),
            (RED_TAGS[verb] if host == red_host else "", RED),
        )
        _tags(image, host, [(word, color) for word, color in verbs if word])
    x, y, *_ = _pixels(*CARDS["Op_Server0"], *CARD)
    running = bool(game["ot_running"])
    write(image, x, y - 24, "OT service runs" if running else "OT STOPPED", MUTED if running else RED)
    x, y, _, height = _pixels(*ZONES["User"])
    write(image, x + 10, y + height - 26, "s ports  U user  P privileged", MUTED)
    return image


def _subnets(image: Image, swept: str, opened: bool) -> None:
    for zone, box in ZONES.items():
        rectangle(image, *_pixels(*box), SUNKEN, RED if swept == zone else LINE, 4 if swept == zone else 2)
        x, y, *_ = _pixels(*box)
        access = f": {'open' if opened else 'closed'} to red" if zone == "Operational" else ""
        write(image, x + 10, y + 8, zone + access, MUTED)


def _gate(image: Image, opened: bool) -> None:
    """The way from Enterprise2 to Op_Server0: a cross while it is closed, a sign > while it is open."""
    x, y, radius, _ = _pixels(*GATE, 0)
    disc(image, x, y, radius, YELLOW if opened else SURFACE, BROWN if opened else EDGE)
    for start, stop in (((-3, -6), (3, 0)), ((-3, 6), (3, 0))) if opened else (((-5, -5), (5, 5)), ((-5, 5), (5, -5))):
        line(image, (x + start[0], y + start[1]), (x + stop[0], y + stop[1]), INK, 3)


def _route(host: str) -> list[tuple[float, float]]:
    """Corners of red's way from User0 around the cards, in the map's coordinates."""
    x, y = CARDS[host]
    start, stop = (132, 227), (x - 2, y + 29)
    if host == "Enterprise2":
        return [start, stop]
    lane = 146 if host.startswith("User") else 437 if host == "Defender" else 298
    if not host.startswith("Op_"):
        return [start, (lane, 227), (lane, stop[1]), stop]
    lane, down = (586, 14) if host == "Op_Server0" else (721, 0)
    return [start, (437, 227), (437, 280), (lane, 280), (lane, stop[1] + down), (stop[0], stop[1] + down)]


def _card(image: Image, host: str, level: int, decoys: list[str], ring: bool) -> None:
    x, y, width, height = _pixels(*CARDS[host], *CARD)
    fill, edge, badge, letter, color = LEVELS[level]
    if ring:
        rectangle(image, x - 7, y - 7, width + 14, height + 14, BLUE, BLUE, 1)
        rectangle(image, x - 3, y - 3, width + 6, height + 6, SUNKEN, SUNKEN, 1)
    rectangle(image, x, y, width, height, fill, edge, 4 if letter == "P" else 2)
    if letter in ("U", "P"):
        image[y + 2 : y + height - 2, x + 2 : x + 14] = badge
    write(image, x + 22, y + 14, host, INK)
    write(image, x + 22, y + 46, "" if decoys else ROLES.get(host, ""), MUTED)
    for number, name in enumerate(decoys[:MOST_DECOYS]):
        rectangle(image, x + 20 + 33 * number, y + 42, 30, 24, PALE_BLUE, BLUE, 1)
        write(image, x + 24 + 33 * number, y + 46, name[:2], BLUE)
    if len(decoys) > MOST_DECOYS:
        write(image, x + 20, y + 68, f"+{len(decoys) - MOST_DECOYS}", BLUE)
    if letter == "P":
        rectangle(image, x + width - 17, y - 11, 26, 26, RED, SURFACE, 2)
    elif letter:
        disc(image, x + width - 4, y + 2, 13, badge, edge)
    write(image, x + width - 9, y - 5, letter, color)


def _tags(image: Image, host: str, verbs: list[tuple[str, Color]]) -> None:
    """What the agents do on a host, at the lower edge of its card."""
    x, y, _, height = _pixels(*CARDS[host], *CARD)
    x += 8
    for word, color in verbs:
        rectangle(image, x, y + height - 10, 12 * len(word) + 8, 22, color, SURFACE, 1)
        write(image, x + 5, y + height - 6, word, SURFACE)
        x += 12 * len(word) + 11


def _pixels(x: float, y: float, width: float, height: float) -> tuple[int, int, int, int]:
    return round(x * SCALE), round(y * SCALE) + TOP, round(width * SCALE), round(height * SCALE)


def write(image: Image, x: int, y: int, text: str, color: Any) -> None:
    """Write a line of text, 12 pixels a character; characters without a glyph become spaces."""
    codes = [ord(letter) - 32 if 0 <= ord(letter) - 32 < len(GLYPHS) else 0 for letter in text]
    for number, code in enumerate(codes):
        left = x + 12 * number
        dots = np.unpackbits(GLYPHS[code][:, None], axis=1, bitorder="little").T.astype(np.bool_)  # [8, 5]
        area = image[y : y + 16, left : left + 10]
        area[dots.repeat(2, 0).repeat(2, 1)[: area.shape[0], : area.shape[1]]] = color


def rectangle(image: Image, x: int, y: int, width: int, height: int, fill: Color, edge: Color, border: int) -> None:
    """A filled rectangle with a border inside its edges."""
    image[y : y + height, x : x + width] = edge
    image[y + border : y + height - border, x + border : x + width - border] = fill


def disc(image: Image, x: int, y: int, radius: int, fill: Color, edge: Color) -> None:
    """A filled circle with a border of two pixels."""
    rows, columns = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    distance = rows**2 + columns**2
    area = image[y - radius : y + radius + 1, x - radius : x + radius + 1]
    area[distance <= radius**2] = edge
    area[distance <= (radius - 2) ** 2] = fill


def line(image: Image, start: tuple[int, int], stop: tuple[int, int], color: Color, width: int) -> None:
    """A straight line."""
    length = max(abs(stop[0] - start[0]), abs(stop[1] - start[1]), 1)
    at = np.arange(length + 1)
    columns = np.rint(start[0] + (stop[0] - start[0]) * at / length).astype(int)
    rows = np.rint(start[1] + (stop[1] - start[1]) * at / length).astype(int)
    for down in range(-(width // 2), width - width // 2):
        for right in range(-(width // 2), width - width // 2):
            image[rows + down, columns + right] = color


def arrow(image: Image, corners: Sequence[tuple[float, float]], color: Color, dashed: bool) -> None:
    """Horizontal and vertical lines through these points of the map, with a head at the end, which points right."""
    points = [_pixels(x, y, 0, 0)[:2] for x, y in corners]
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        left, top, width, height = min(x, to_x), min(y, to_y), abs(to_x - x), abs(to_y - y)
        for at in range(0, max(width, height), 16 if dashed else 1):
            long = min(9, max(width, height) - at) if dashed else 1
            across, down = (at, 0) if width else (0, at)
            rows, columns = (4, long) if width else (long, 4)
            image[top + down - 2 : top + down - 2 + rows, left + across - 2 : left + across - 2 + columns] = color
    x, y = points[-1]
    for back in range(14):
        image[y - back // 2 : y + back // 2 + 1, x - back] = color

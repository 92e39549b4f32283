"""One game as a picture: the map of the network, with who holds what, decoys, and what the agents did last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.rules.scenario import GATEWAYS, HOSTS, NOWHERE, RED_SLEEP, RED_VERBS, SWEEP
from cage2.rules.state import REDS, decoys_of
from cage2.words import RED_WORDS, describe_red_action

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

PAGE, SURFACE, SUNKEN, INK, MUTED = (251, 251, 250), (255, 255, 255), (243, 243, 241), (26, 27, 30), (91, 94, 102)
LINE, EDGE = (228, 228, 224), (132, 135, 142)
BLUE, GREEN, RED = (11, 92, 173), (0, 105, 75), (178, 58, 10)
ACCESS_COLORS: Final = (  # fill, border, badge, letter on the badge
    (SURFACE, EDGE, None, INK),
    ((255, 248, 227), (122, 82, 0), (255, 212, 102), (58, 42, 0)),
    ((253, 238, 232), RED, RED, SURFACE),
)
SEEN: Final = (236, 238, 241)

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
    write(image, 12, 8, f"step {game['steps']}", INK)
    write(image, 150, 8, f"blue: {blue or 'nothing yet'}", BLUE)
    write(image, 720, 8, f"green: {f'Scan {green}' if green else 'Sleep'}", GREEN)
    write(image, 150, 31, f"red, {REDS[game['red']]}: {describe_red_action(game)}", RED)
    opened = bool(int(game["held"]) & GATEWAYS)
    for zone, box in ZONES.items():
        swept = verb == SWEEP and target != NOWHERE and ("Enterprise", "Operational", "User")[target] == zone
        rectangle(image, *_pixels(*box), SUNKEN, RED if swept else LINE, 4 if swept else 2)
        x, y, *_ = _pixels(*box)
        write(
            image, x + 10, y + 8, zone + f": {'open' if opened else 'closed'} to red" * (zone == "Operational"), MUTED
        )
    for one, other in WIRES:
        line(image, _centre(one), _centre(other), EDGE, 2)
    red_host = HOSTS[target] if verb not in (RED_SLEEP, SWEEP) and target < len(HOSTS) else ""
    if red_host and red_host != "User0":
        line(image, _centre("User0"), _centre(red_host), RED, 5, dashed=game["red_success"] == 0)
    x, y, radius, _ = _pixels(*GATE, 0)
    disc(image, x, y, radius, GREEN if opened else SURFACE, EDGE)
    if not opened:
        line(image, (x - 6, y - 6), (x + 6, y + 6), RED, 3)
        line(image, (x - 6, y + 6), (x + 6, y - 6), RED, 3)
    decoys = decoys_of(games, index)
    blue_host = blue.rpartition(" ")[2]
    for h, host in enumerate(HOSTS):
        access = (int(game["held"]) >> h & 1) + (int(game["owned"]) >> h & 1)
        _card(image, host, access, bool(game["known_ports"][h]), decoys.get(host, []), host == blue_host)
        x, y, _, height = _pixels(*CARDS[host], *CARD)
        tags: Iterable[tuple[str, Color]] = (
            (blue.split(" ")[0] if host == blue_host else "", BLUE),
            ("Scan" if host == green else "", GREEN),
            (RED_WORDS[RED_VERBS[verb]] if host == red_host else "", RED),
        )
        for word, color in tags:
            if word:
                rectangle(image, x, y + height - 6, 12 * len(word) + 8, 20, color, color, 1)
                write(image, x + 5, y + height - 3, word, SURFACE)
                x += 12 * len(word) + 12
    x, y, *_ = _pixels(*CARDS["Op_Server0"], *CARD)
    running = bool(game["ot_running"])
    write(image, x, y - 20, "OT service runs" if running else "OT STOPPED", MUTED if running else RED)
    x, y, _, height = _pixels(*ZONES["User"])
    write(image, x + 10, y + height - 26, "s ports  U user  P privileged", MUTED)
    return image


def _card(image: Image, host: str, access: int, seen: bool, decoys: list[str], ring: bool) -> None:
    x, y, width, height = _pixels(*CARDS[host], *CARD)
    fill, edge, badge, letter = ACCESS_COLORS[access]
    if ring:
        rectangle(image, x - 7, y - 7, width + 14, height + 14, BLUE, BLUE, 1)
        rectangle(image, x - 3, y - 3, width + 6, height + 6, SUNKEN, SUNKEN, 1)
    rectangle(image, x, y, width, height, fill, edge, 2 + 2 * (access == 2))
    write(image, x + 10, y + 12, host, INK)
    if badge is not None:
        rectangle(image, x + width - 28, y + 36, 22, 22, badge, edge, 1)
        write(image, x + width - 22, y + 40, " UP"[access], letter)
    elif seen:
        disc(image, x + width - 16, y + 46, 11, SEEN, EDGE)
        write(image, x + width - 21, y + 39, "s", INK)
    codes = " ".join(name[:2] for name in decoys[:MOST_DECOYS])
    more = f" +{len(decoys) - MOST_DECOYS}" if len(decoys) > MOST_DECOYS else ""
    write(image, x + 10, y + 42 + 20 * bool(more), codes + more, BLUE)


def _pixels(x: float, y: float, width: float, height: float) -> tuple[int, int, int, int]:
    return round(x * SCALE), round(y * SCALE) + TOP, round(width * SCALE), round(height * SCALE)


def _centre(host: str) -> tuple[int, int]:
    x, y, width, height = _pixels(*CARDS[host], *CARD)
    return x + width // 2, y + height // 2


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


def line(
    image: Image, start: tuple[int, int], stop: tuple[int, int], color: Color, width: int, dashed: bool = False
) -> None:
    """A straight line, in dashes of 14 pixels if wanted."""
    length = max(abs(stop[0] - start[0]), abs(stop[1] - start[1]), 1)
    at = np.arange(length + 1)
    if dashed:
        at = at[at // 14 % 2 == 0]
    columns = np.rint(start[0] + (stop[0] - start[0]) * at / length).astype(int)
    rows = np.rint(start[1] + (stop[1] - start[1]) * at / length).astype(int)
    for down in range(-(width // 2), width - width // 2):
        for right in range(-(width // 2), width - width // 2):
            image[rows + down, columns + right] = color

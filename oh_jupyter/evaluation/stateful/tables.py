"""Tables of the stateful tasks, generated from a seed: small, with gaps, repeats and outliers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

Row = dict[str, Any]
FIRST_DAY = date(2025, 1, 1)


def _day(random: Random, days: int = 365) -> str:
    return (FIRST_DAY + timedelta(random.randrange(days))).isoformat()


def _orders(random: Random) -> list[Row]:
    rows = [
        {
            "order_id": number,
            "day": _day(random),
            "region": random.choice(["north", "south", "east", "west"]),
            "product": random.choice(["lamp", "desk", "chair", "shelf", "rug"]),
            "quantity": random.randint(1, 9),
            "price": round(random.uniform(5, 200), 2) if random.random() > 0.06 else "",
        }
        for number in range(1, 601)
    ]
    return rows + random.sample(rows, 15)


def _sensors(random: Random) -> list[Row]:
    rows = []
    for hour in range(24 * 30):
        for sensor in ("a", "b", "c"):
            value = 20 + 5 * (hour % 24 > 11) + random.gauss(0, 1)
            if random.random() < 0.01:
                value += 60
            reading = "" if random.random() < 0.03 else round(value, 3)
            rows.append({"hour": hour, "sensor": sensor, "reading": reading})
    return rows


def _patients(random: Random) -> list[Row]:
    return [
        {
            "patient": number,
            "age": random.randint(18, 90),
            "group": random.choice(["treated", "control"]),
            "before": round(random.gauss(140, 12), 1),
            "after": round(random.gauss(132, 14), 1) if random.random() > 0.08 else "",
            "site": random.choice(["A", "B", "C"]),
        }
        for number in range(1, 401)
    ]


def _staff(random: Random) -> list[Row]:
    return [
        {
            "name": f"person{number:03}",
            "team": random.choice(["sales", "support", "research", "legal"]),
            "salary": round(random.uniform(30_000, 120_000), -2),
            "hired": _day(random),
            "hours": random.choice([20, 30, 40]),
        }
        for number in range(1, 251)
    ]


def _flights(random: Random) -> list[Row]:
    return [
        {
            "flight": f"{random.choice(['XA', 'YB', 'ZC'])}{number}",
            "day": _day(random, 90),
            "origin": random.choice(["OSL", "CDG", "JFK", "NRT"]),
            "delay": round(random.gauss(12, 25)) if random.random() > 0.05 else "",
            "seats": random.choice([120, 180, 240]),
            "sold": random.randint(40, 120),
        }
        for number in range(1, 501)
    ]


def _prices(random: Random) -> list[Row]:
    level = {"ore": 50.0, "oil": 80.0, "tin": 20.0}
    rows = []
    for number in range(260):
        for ticker in level:
            level[ticker] *= 1 + random.gauss(0.0003, 0.015)
            day = (FIRST_DAY + timedelta(number)).isoformat()
            rows.append({"day": day, "ticker": ticker, "close": round(level[ticker], 4)})
    return rows


TABLES: dict[str, Callable[[Random], list[Row]]] = {
    "orders": _orders,
    "sensors": _sensors,
    "patients": _patients,
    "staff": _staff,
    "flights": _flights,
    "prices": _prices,
}


def write_table(name: str, seed: int, folder: Path) -> None:
    """Write a table as ``NAME.csv``; the same seed gives the same bytes."""
    rows = TABLES[name](Random(f"{name} {seed}"))
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

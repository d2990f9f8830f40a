"""Generators of small random task pages, similar to MiniWoB's.

Each function returns the goal and the page. The page calls ``finish(right)`` when the task ends.
It may define a function ``hear(text)`` that receives the agent's messages.
"""

from __future__ import annotations

from html import escape
from json import dumps
from random import Random

WORDS = (
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbour", "indigo", "juniper",
    "kelp", "lagoon", "maple", "nectar", "opal", "pebble", "quartz", "reed", "saffron", "tundra",
)  # fmt: skip
PAGE_STYLE = (
    "body{font:15px sans-serif;max-width:36em;margin:1em auto}label{display:block;margin:.4em 0}"
    "button,select,input{font:inherit;margin:.2em}td,th{padding:.2em 1em;text-align:left}"
)
FINISH_SCRIPT = """
  function finish(right) {
    if (window.outcome !== undefined) return;
    window.outcome = right ? 1 : 0;
    document.querySelector("main").replaceChildren("Thank you.");
  }
  const value = (id) => document.getElementById(id).value.trim();
"""


def _page(goal: str, body: str, script: str = "") -> tuple[str, str]:
    html = (
        f"<!doctype html><meta charset=utf-8><title>Task</title><style>{PAGE_STYLE}</style>"
        f"<p>{escape(goal)}</p><main>{body}</main><script>{FINISH_SCRIPT}{script}</script>"
    )
    return goal, html


def click_button(numbers: Random) -> tuple[str, str]:
    """Click one of several named buttons."""
    names = numbers.sample(WORDS, 5)
    wanted = numbers.choice(names)
    buttons = "".join(
        f"<button onclick='finish({dumps(name == wanted)})'>{name}</button>" for name in names
    )
    return _page(f'Click the button "{wanted}".', buttons)


def enter_text(numbers: Random) -> tuple[str, str]:
    """Enter a text and submit it."""
    text = " ".join(numbers.sample(WORDS, 2))
    body = "<label>Text <input id=text></label><button onclick=judge()>Submit</button>"
    script = f"const judge = () => finish(value('text') === {dumps(text)});"
    return _page(f'Enter "{text}" into the text field and press Submit.', body, script)


def choose_option(numbers: Random) -> tuple[str, str]:
    """Choose an option from a list and submit it."""
    names = numbers.sample(WORDS, 8)
    wanted = numbers.choice(names[1:])
    options = "".join(f"<option>{name}</option>" for name in names)
    body = f"<label>Choice <select id=choice>{options}</select></label>"
    script = f"const judge = () => finish(value('choice') === {dumps(wanted)});"
    body += "<button onclick=judge()>Submit</button>"
    return _page(f'Choose "{wanted}" from the list and press Submit.', body, script)


def tick_boxes(numbers: Random) -> tuple[str, str]:
    """Tick some boxes, and only those."""
    names = numbers.sample(WORDS, 6)
    wanted = sorted(numbers.sample(names, 3))
    boxes = "".join(f"<label><input type=checkbox value={n}> {n}</label>" for n in names)
    script = f"""const judge = () => {{
      const ticked = [...document.querySelectorAll("input:checked")].map((box) => box.value);
      finish(ticked.sort().join() === {dumps(",".join(wanted))});
    }}"""
    listed = ", ".join(f'"{name}"' for name in wanted)
    goal = f"Tick {listed} and nothing else, then press Submit."
    return _page(goal, boxes + "<button onclick=judge()>Submit</button>", script)


def log_in(numbers: Random) -> tuple[str, str]:
    """Fill in a name and a password."""
    name, password = numbers.choice(WORDS), f"{numbers.choice(WORDS)}{numbers.randrange(100, 999)}"
    body = (
        "<form onsubmit='judge(event)'><label>User name <input id=name></label>"
        "<label>Password <input id=password type=password></label><button>Log in</button></form>"
    )
    script = f"""const judge = (event) => {{
      event.preventDefault();
      finish(value("name") === {dumps(name)} && value("password") === {dumps(password)});
    }};"""
    return _page(f'Log in as "{name}" with the password "{password}".', body, script)


def find_in_table(numbers: Random) -> tuple[str, str]:
    """Find a price in a table and enter it."""
    names = numbers.sample(WORDS, 6)
    prices = {name: numbers.randrange(10, 99) for name in names}
    wanted = numbers.choice(names)
    rows = "".join(f"<tr><td>{name}</td><td>{price}</td></tr>" for name, price in prices.items())
    body = (
        f"<table><tr><th>Article</th><th>Price</th></tr>{rows}</table>"
        "<label>Price <input id=price></label><button onclick=judge()>Submit</button>"
    )
    script = f"const judge = () => finish(value('price') === '{prices[wanted]}');"
    return _page(f'Enter the price of "{wanted}" and press Submit.', body, script)


def add_numbers(numbers: Random) -> tuple[str, str]:
    """Add two numbers."""
    first, second = numbers.randrange(10, 50), numbers.randrange(10, 50)
    body = (
        f"<p>{first} + {second} = ?</p><label>Sum <input id=sum></label>"
        "<button onclick=judge()>Submit</button>"
    )
    script = f"const judge = () => finish(value('sum') === '{first + second}');"
    return _page("Enter the sum of the two numbers and press Submit.", body, script)


def open_section(numbers: Random) -> tuple[str, str]:
    """Open the section that contains a link, and click the link."""
    names = numbers.sample(WORDS, 9)
    wanted = numbers.choice(names)
    sections = ""
    for number in range(3):
        links = " ".join(
            f"<a href=# onclick='finish({dumps(name == wanted)})'>{name}</a>"
            for name in names[number * 3 : number * 3 + 3]
        )
        sections += f"<details><summary>Section {number + 1}</summary>{links}</details>"
    return _page(f'Open the sections until you find the link "{wanted}", and click it.', sections)


def drag_to_place(numbers: Random) -> tuple[str, str]:
    """Drag an item into a box."""
    names = numbers.sample(WORDS, 3)
    wanted = numbers.choice(names)
    things = "".join(
        f"<p role=listitem aria-label={name} draggable=true "
        f"ondragstart=\"event.dataTransfer.setData('text', '{name}')\">{name}</p>"
        for name in names
    )
    body = (
        f"{things}<div role=region aria-label=box style='border:1px solid;height:90px' "
        "ondragover='event.preventDefault()' "
        f"ondrop=\"finish(event.dataTransfer.getData('text') === '{wanted}')\">box</div>"
    )
    return _page(f'Drag "{wanted}" into the box.', body)


def wait_for_it(numbers: Random) -> tuple[str, str]:
    """Start an action that takes some time, then confirm it."""
    wait = numbers.randrange(150, 350)
    body = "<button onclick=begin()>Start</button><div id=later></div>"
    script = f"""const begin = () => setTimeout(() => {{
      document.getElementById("later").innerHTML = "<button onclick=finish(true)>Confirm</button>";
    }}, {wait});"""
    return _page("Press Start, wait for the button Confirm, and press it.", body, script)


def answer_question(numbers: Random) -> tuple[str, str]:
    """Count list entries, and tell the user the number."""
    names = [numbers.choice(WORDS[:4]) for _ in range(12)]
    wanted = numbers.choice(names)
    body = "<ul>" + "".join(f"<li>{name}</li>" for name in names) + "</ul>"
    script = f"const hear = (text) => finish(text.trim() === '{names.count(wanted)}');"
    script += "window.hear = hear;"
    goal = f'How often is "{wanted}" in the list? Tell the user the number, and only that.'
    return _page(goal, body, script)


PAGES = (
    add_numbers,
    answer_question,
    choose_option,
    click_button,
    drag_to_place,
    enter_text,
    find_in_table,
    log_in,
    open_section,
    tick_boxes,
    wait_for_it,
)
"""Generators of all pages."""

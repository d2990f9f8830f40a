"""Risks in the syntax tree of a cell, and harmless cells."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from functools import partial

import pytest
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.runtime.cell_risk import cell_risks
from oh_jupyter.runtime.risk import command_risks

TREE = "it removes a whole directory tree"
ENDS = "it ends or resets the kernel, whose variables are lost"
WRITES = "it writes outside of the workspace"
CREDENTIALS = "it uses credentials"
CONFIRMATION = "it changes which actions wait for a person"
NOTEBOOK = {
    "tools": shutil,
    "remove_tree": shutil.rmtree,
    "home": pathlib.Path.home(),
    "call": os.system,
    "P": pathlib.Path,
    "there": "/srv/data",
    "get_ipython": InteractiveShell.get_ipython,
}
"""What earlier cells have left."""

RISKY = {
    "import shutil; shutil.rmtree('/x')": TREE,
    "tools.rmtree('/x')": TREE,
    "remove_tree(home / 'data')": TREE,
    "remove_tree('.')": TREE,
    "getattr(__import__('shutil'), 'rmtree')('/x')": TREE,
    "from importlib import import_module as im\nim('shutil').rmtree('/x')": TREE,
    "exec(\"import shutil; shutil.rmtree('/y')\")": TREE,
    "import shutil; shutil.rmtree(folder)": "it removes a directory tree that the cell does not",
    "import os\nos.system('rm -rf /x')": TREE,
    "call('sudo ls')": "it becomes another user",
    "import subprocess as sp\nsp.run(['rm', '-rf', '/x'])": TREE,
    "from subprocess import *\nimport subprocess\nsubprocess.check_call('sudo ls', shell=True)": (
        "it becomes another user"
    ),
    "!rm -rf /x": TREE,
    "out = !rm -rf ~/x": TREE,
    "%%bash\nrm -rf /x": TREE,
    "get_ipython().system('sudo ls')": "it becomes another user",
    "%reset -f": "it deletes the variables",
    "get_ipython().run_line_magic('reset', '-f')": "it deletes the variables",
    "get_ipython().kernel.do_shutdown(True)": ENDS,
    "kernel = get_ipython().kernel\nkernel.do_shutdown(True)": ENDS,
    "exit": ENDS,
    "quit()": ENDS,
    "import os; os._exit(0)": ENDS,
    "import os; os.kill(os.getpid(), 9)": ENDS,
    "open('/srv/x', 'w')": WRITES,
    "open(there + '/x', mode='a')": WRITES,
    "with open('/srv/x', 'w') as f: f.write('1')": WRITES,
    "P('/srv/x').write_text('')": WRITES,
    "path = P('/srv') / 'x'\npath.unlink()": WRITES,
    "import os; os.remove(f'{there}/x')": WRITES,
    "import shutil; shutil.move('/srv/a', 'b')": WRITES,
    "df.to_csv('/srv/out.csv')": WRITES,
    "%%writefile /srv/x\ntext": WRITES,
    "(home / '.ssh' / 'id_rsa').read_text()": CREDENTIALS,
    "open(f'{home}/.aws/credentials').read()": CREDENTIALS,
    "import os; open(os.path.expanduser('~/.netrc'))": CREDENTIALS,
    "import os; os.chmod('a', 0o777)": "it opens files to everybody",
    "this is no Python; rm -rf /": TREE,
    "rm -rf /x": TREE,  # Python's grammar takes it, IPython runs the command
    "%time tools.rmtree('/x')": TREE,
    "%timeit -n 1 -r 1 tools.rmtree('/x')": TREE,
    "import subprocess as sp; sp.Popen(args='rm -rf /x', shell=True)": TREE,
    "import subprocess; subprocess.run(args=['rm', '-rf', '/x'])": TREE,
    "import os; me = os.getpid(); os.kill(me, 9)": ENDS,
    "get_ipython().user_ns.clear()": ENDS,
    "import os; os.open('/srv/x', os.O_WRONLY | os.O_CREAT)": WRITES,
    "import shutil; shutil.copy('a', dst='/srv/a')": WRITES,
    "df.to_csv(path_or_buf='/srv/out.csv')": WRITES,
    "import numpy as np; np.save('/srv/a.npy', [1])": WRITES,
    "archive.extractall('/srv')": WRITES,
    "import os; open(os.path.join(os.environ['HOME'], '.aws', 'credentials'))": CREDENTIALS,
    "P.home().joinpath('.ssh', 'id_rsa').read_text()": CREDENTIALS,
    "!cat ~/.ssh/id_rsa": CREDENTIALS,
    "cat ~/.netrc": CREDENTIALS,
    "call('cat ~/.ssh/id_rsa')": CREDENTIALS,
    "%config OhJupyter.confirmation = 'never'": CONFIRMATION,
    "get_ipython().run_line_magic('config', 'OhJupyter.confirmation=None')": CONFIRMATION,
    "settings.confirmation = 'never'": CONFIRMATION,
    "%config OhJupyter.sandbox_hosts = ['example.org']": CONFIRMATION,
    "c.OhJupyter.sandbox_network = 'host'": CONFIRMATION,
    "%reload_ext oh_jupyter": "it ends the runtime",
}
HARMLESS = [
    "1 + 1",
    "print('rm -rf /')",
    "text = 'sudo make me a sandwich'",
    "import shutil; shutil.rmtree('build')",
    f"import shutil; shutil.rmtree({tempfile.gettempdir()!r} + '/mine')",
    "open('/etc/passwd').read()",
    "open('out.txt', 'w').write('x')",
    "df.to_csv('out.csv'); df.to_csv('s3://bucket/out.csv')",
    "df.replace('/a', '/b'); 'x'.replace('/', '')",
    "import sys; sys.exit",
    "import sys; sys.exit(1)",
    "raise SystemExit(1)",
    "for n in range(3):\n    !echo {n}",
    "import os; os.environ['HOME']",
    "%matplotlib inline",
    "%timeit -n 10 sum(range(3))",
    "%config InlineBackend.figure_format = 'svg'",
    "rm = 1\nrm -3 / 2",
    "import os; os.open('/etc/passwd', os.O_RDONLY)",
    "?open",
    "",
]


@pytest.mark.parametrize(("code", "reason"), RISKY.items(), ids=list(RISKY))
def test_risky_cells_need_approval(code: str, reason: str, tmp_path) -> None:
    commands = partial(command_risks, workspace_dir=str(tmp_path))
    workspace = str(tmp_path / "workspace")
    reasons = [str(each) for each in cell_risks(code, workspace, commands, NOTEBOOK.get)]
    assert [each for each in reasons if each.startswith(reason)], reasons


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless_cells_need_no_approval(code: str, tmp_path) -> None:
    commands = partial(command_risks, workspace_dir=str(tmp_path))
    assert cell_risks(code, str(tmp_path), commands, NOTEBOOK.get) == []


@pytest.mark.parametrize("code", ["(" * 5000, "a" + "." * 3, "x = " + "-" * 100_000 + "1", "\0"])
def test_unparsable_cells_are_no_error(code: str, tmp_path) -> None:
    assert cell_risks(code, str(tmp_path), lambda command: []) == []


def test_names_that_refer_to_each_other_end(tmp_path) -> None:
    assert cell_risks("a = b\nb = a\na.rmtree(b)", str(tmp_path), lambda command: []) != []

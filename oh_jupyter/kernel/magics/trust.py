"""``%oh_trust``: a person's trust in the settings of a folder."""

from __future__ import annotations

from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument

from oh_jupyter.config import (
    faults_of,
    folder_settings,
    shown_settings,
)
from oh_jupyter.errors import ConfirmationError
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.options import magic_options, parse_line
from oh_jupyter.trust import distrust, is_trusted, trust

EXAMPLES = "%oh_trust --show\n%oh_trust\n%oh_trust --forget"


@magics_class
class TrustMagics(OhMagics):
    """Trust in the settings of a folder."""

    @magic_options(examples=EXAMPLES)
    @argument("--show", action="store_true", help="only show the settings that do not hold yet")
    @argument("--forget", action="store_true", help="end your trust in the file")
    @line_magic
    def oh_trust(self, line: str) -> Table | None:
        """Trust the ``config.toml`` of the working directory, as it is now.

        Without your trust, its settings only limit agents further, because an agent could have
        written them. Any change of the file ends the trust.
        """
        options = parse_line(self.oh_trust, line)
        file, values = folder_settings(is_trusted=is_trusted)
        for fault in faults_of(file):
            print(fault)
        if options.show:
            if not values:
                print(f"All settings of {file.path} hold.")
                return None
            return Table(("setting", "value"), tuple(shown_settings(values)))
        if options.forget:
            removed = distrust(file.path)
            print(f"{file.path} is no longer trusted." if removed else "It was not trusted.")
            return None
        if not self.oh.host.trusts():
            raise ConfirmationError(
                "Only a cell of yours can trust settings: write %oh_trust as a line of it"
            )
        trust(file)
        print(f"{file.path} is trusted. Restart the kernel to apply its settings.")
        return Table(("setting", "value"), tuple(shown_settings(values)))

"""What the commands have in common: arguments, and how a refusal is told."""
import argparse
import pathlib
import sys

from . import place
from .control import Control
from .errors import LabError


def parser(description, epilog=None):
    made = argparse.ArgumentParser(prog=f"lab/wan/{pathlib.Path(sys.argv[0]).name}", description=description, epilog=epilog,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--lab", metavar="ID", help="which lab (default: $CHEOPS_LAB, or the only one that runs)")
    made.add_argument("--dir", metavar="DIR", type=pathlib.Path, default=place.default_dir(),
                      help="the folder of the labs' state (default: $CHEOPS_LAB_DIR, or %(default)s)")
    return made


def find_lab(options):
    return place.find(options.dir, options.lab)


def open_control(options):
    return Control(find_lab(options)["folder"])


def pair_of(first, second, one_way=False):
    return f"{first}{'>' if one_way else '<>'}{second}"


def run(main):
    """Runs a command's main(), and ends with its exit status: 0 fine, 1 refused or failed, 2 wrong arguments."""
    try:
        sys.exit(main() or 0)
    except LabError as error:
        print(f"lab/wan/{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)

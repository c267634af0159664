"""What the commands of this lab have in common."""
import argparse
import os
import pathlib
import sys

from wanlib import place
from wanlib.errors import LabError

LAB = "openstack"
# databases and images: nothing for a file system in memory
DIR = pathlib.Path(os.environ.get("OPENSTACK_LAB_DIR", "/var/tmp/cheops-openstack"))


def parser(description, epilog=None):
    made = argparse.ArgumentParser(prog=f"lab/openstack/{pathlib.Path(sys.argv[0]).name}", description=description,
                                   epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--lab", metavar="ID", default=LAB, help="the name of the lab (default: %(default)s)")
    made.add_argument("--dir", metavar="DIR", type=pathlib.Path, default=DIR,
                      help="the folder of the labs' state (default: %(default)s)")
    return made


def find_lab(options):
    state = place.running(options.dir).get(place.check_id(options.lab))
    if state is None:
        raise LabError(f"no lab {options.lab} runs in {options.dir}; start one with lab/openstack/up 2")
    return state


def run(main):
    """Runs a command's main(), and ends with its exit status: 0 fine, 1 refused or failed, 2 wrong arguments."""
    try:
        sys.exit(main() or 0)
    except LabError as error:
        print(f"lab/openstack/{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)

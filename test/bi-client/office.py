# LibreOffice without a window, in a profile of its own, for as long as it is needed.

import os
import signal
import subprocess
import sys
import threading
import time

import uno
from com.sun.star.connection import NoConnectException

LIMIT_SECONDS = 60
POLL_SECONDS = 0.05


def start_office(folder, pipe):
    profile = uno.systemPathToFileUrl(os.path.join(folder, "profile"))
    switches = ["--headless", "--norestore", "--nologo", "--nodefault"]
    # A session of its own, as the command is a script that starts the office: to be killed, all of them must be.
    office = subprocess.Popen(
        ["soffice", *switches, f"--accept=pipe,name={pipe};urp", f"-env:UserInstallation={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        start_new_session=True,
    )
    # A call that waits for an office that hangs ends with it.
    limit = threading.Timer(LIMIT_SECONDS, end_late, [office])
    limit.daemon = True
    limit.start()
    return office


def end_office(office, pipe):
    """By asking it: killed, it would leave its sockets behind."""
    service(connect(office, pipe), "com.sun.star.frame.Desktop").terminate()
    office.wait()


def end_late(office):
    print(f"the office did not finish within {LIMIT_SECONDS} s", file=sys.stderr)
    os.killpg(office.pid, signal.SIGKILL)


def connect(office, pipe):
    resolver = service(uno.getComponentContext(), "com.sun.star.bridge.UnoUrlResolver")
    while office.poll() is None:
        try:
            return resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        except NoConnectException:
            time.sleep(POLL_SECONDS)
    raise RuntimeError(f"the office takes no connection: it ended with {office.returncode}")


def service(context, name):
    return context.ServiceManager.createInstanceWithContext(name, context)

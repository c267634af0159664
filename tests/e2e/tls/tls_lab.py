"""Certificates on the spot, services that speak TLS, and clients that do."""
import pathlib
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "proxy"))

import proxy_lab  # noqa: E402
from proxy_lab import PATIENCE_S, Service, Wire  # noqa: E402


def openssl(*arguments):
    run = subprocess.run(["openssl", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stdout.decode()


class Pair:
    """A certificate and its key, as files."""

    def __init__(self, certificate, key):
        self.certificate, self.key = str(certificate), str(key)

    @property
    def der(self):
        return ssl.PEM_cert_to_DER_cert(pathlib.Path(self.certificate).read_text())


class Authority:
    """A root, and what it signs."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.root = self.folder / "root.pem"
        self.root_key = self.folder / "root.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2", "-subj",
                f"/CN={name}", "-keyout", self.root_key, "-out", self.root)

    def issue(self, name, alternative="DNS:localhost,IP:127.0.0.1"):
        pair = Pair(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative}\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", f"/CN={name}", "-keyout",
                pair.key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.root, "-CAkey", self.root_key, "-CAcreateserial", "-days", "1",
                "-extfile", extensions, "-out", pair.certificate)
        pathlib.Path(pair.key).chmod(0o600)
        return pair


class TlsWire(Wire):
    """A Wire that does not take a connection that was cut off for one that ended."""

    @classmethod
    def to(cls, port, authority=None, pair=None, name="localhost", **options):
        context = ssl.create_default_context(cafile=str(authority.root) if authority else None)
        if pair:
            context.load_cert_chain(pair.certificate, pair.key)
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        return cls(context.wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False))

    @property
    def der(self):
        return self.sock.getpeercert(True)

    def more(self, most=65536):
        try:
            return super().more(most)
        except ssl.SSLEOFError as error:
            raise proxy_lab.Broken(f"cut off: {error}") from None

    def end(self):
        self.sock = self.sock.unwrap()


class TlsService(Service):
    """A service behind TLS. `refusals` are the handshakes that failed."""

    def __init__(self, pair, clients=None, **options):
        self.pair, self.clients = pair, clients
        self.refusals = []
        self.peers = []
        super().__init__(**options)

    def run(self, wire):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair.certificate, self.pair.key)
        if self.clients:
            context.load_verify_locations(str(self.clients.root))
            context.verify_mode = ssl.CERT_REQUIRED
        try:
            wire.sock = context.wrap_socket(wire.sock, server_side=True, suppress_ragged_eofs=False)
        except (ssl.SSLError, OSError) as error:
            self.refusals.append(str(error))
            wire.sock.close()
            with self.changed:
                self.wires.remove(wire)
                self.changed.notify_all()
            return
        self.peers.append(wire.sock.getpeercert(True))
        super().run(wire)

"""An S3 server on loopback for the tests: moto, which keeps everything in memory, at a port that it prints. It ends with
its standard input.

moto looks at the condition of a put and then writes, as two steps, so that two writers may pass at once, which S3 never
lets happen. Here one request is done after the other. One that does not come whole is not done at all.
"""

import gc
import io
import os
import sys
import threading

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

moto = create_backend_app("s3")
# It costs a third of the time of a request, and the process is short.
gc.disable()
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    if len(body) < length:
        start_response("400 Bad Request", [("Content-Length", "0")])
        return []
    environ["wsgi.input"] = io.BytesIO(body)
    with turn:
        return list(moto(environ, start_response))


class Whole:
    """What a client sends. The end of it within the headers is no end of them, for which Python takes it."""

    def __init__(self, file):
        self.file = file
        self.is_inside = False

    def __getattr__(self, name):
        return getattr(self.file, name)

    def readline(self, *limit):
        line = self.file.readline(*limit)
        if not line.endswith(b"\n") and (line or self.is_inside):
            raise ConnectionResetError
        self.is_inside = line.strip() != b""
        return line


class Handler(WSGIRequestHandler):
    def setup(self):
        super().setup()
        self.rfile = Whole(self.rfile)

    # Connections stay open, as those of S3 do.
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log(self, *_):
        pass


server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Handler)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)

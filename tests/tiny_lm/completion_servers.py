"""Servers of the OpenAI protocol for tests: they answer the pass key, or as told."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PasskeyServer:
    """A server that waits `delay` seconds for each question. `asked` holds the prompts of all requests.

    `steps` are functions (number of the question) -> status code or None; a code is sent instead of an answer.
    """

    def __init__(self, *, delay=0.0, step=lambda number: None, model="m", port=0):
        self.asked, self.answered, self.delay, self.step, self.model = [], [], delay, step, model
        self.lock, self.at_once, self.most_at_once = threading.Lock(), 0, 0
        self.listener, self.port = None, port
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        """Listen, at the same port as before."""
        self.listener = ThreadingHTTPServer(("127.0.0.1", self.port), self.make_handler())
        self.port = self.listener.server_port
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self):
        """Close the port. What is under way gets no answer."""
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown()
            listener.server_close()

    def make_handler(self):
        """Return the handler's class."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                listener = owner.listener
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = body["prompt"]
                is_count = body["max_tokens"] == 1
                with owner.lock:
                    if not is_count:
                        owner.asked.append(text)
                        owner.at_once += 1
                        owner.most_at_once = max(owner.most_at_once, owner.at_once)
                    number = len(owner.asked)
                time.sleep(0.0 if is_count else owner.delay)
                code = None if is_count else owner.step(number)
                with owner.lock:
                    owner.at_once -= not is_count
                if owner.listener is not listener or listener is None:
                    self.close_connection = True
                    return
                key = text.split("The pass key is ")[1].split(".")[0] if "The pass key is " in text else "x"
                reply = {"choices": [{"text": key}], "usage": {"prompt_tokens": len(text.split())}}
                self.answer(json.dumps(reply) if code is None else "no", code or 200)
                if code is None and not is_count:
                    owner.answered.append(text)

            def do_GET(self):
                self.answer(json.dumps({"data": [{"id": owner.model}]}))

            def answer(self, text, code=200):
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        return Handler


@contextlib.contextmanager
def passkey_servers(count, **options):
    """So many servers, stopped at the end."""
    servers = [PasskeyServer(**options) for _ in range(count)]
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()

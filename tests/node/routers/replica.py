"""A server that answers as a replica of vLLM does: completions in a stream, and its API key asked below /v1 only.

python replica.py PORT KEY [drops]

With `drops`, it ends the connection of a completion without a response, as one that crashes does.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS = 8
TOKEN_SECONDS = 0.05
METRICS = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n'
FREE = {"/health": "", "/version": '{"version": "0.29.0"}', "/metrics": METRICS}


class Replica(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port, key, drops = 0, "", False

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        if self.path in FREE:
            self._answer(200, FREE[self.path])
        elif not self._is_allowed():
            self._answer(401, '{"error": "Unauthorized"}')
        elif self.path == "/v1/models":
            self._answer(200, json.dumps({"object": "list", "data": [{"id": "gemma", "object": "model"}]}))
        else:
            self._answer(404, "{}")

    def do_POST(self) -> None:
        if self.drops:
            self.close_connection = True
            return
        self.rfile.read(int(self.headers["content-length"]))
        if not self._is_allowed():
            self._answer(401, '{"error": "Unauthorized"}')
            return
        if self.path.endswith("/rerank"):
            # vLLM 0.32.0, entrypoints/pooling/score/protocol.py.
            row = {"index": 0, "document": {"text": "a", "multi_modal": None}, "relevance_score": 0.5}
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._answer(200, json.dumps({"id": "score-1", "model": "gemma", "usage": usage, "results": [row]}))
            return
        if "completions" not in self.path:
            row = {"index": 0, "object": "", "embedding": [0.5], "score": 0.5, "probs": [0.5], "data": [0.5]}
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._answer(200, json.dumps({"object": "list", "model": "gemma", "data": [row], "usage": usage}))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(TOKENS):
            choice = {"index": 0, "text": f" {number}", "finish_reason": None}
            self._send(
                json.dumps({"object": "text_completion", "model": "gemma", "id": f"{self.port}", "choices": [choice]})
            )
            time.sleep(TOKEN_SECONDS)
        self._send("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _is_allowed(self) -> bool:
        return self.headers.get("authorization") == f"Bearer {self.key}"

    def _send(self, text: str) -> None:
        event = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    Replica.port, Replica.key, Replica.drops = int(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["drops"]
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", Replica.port), Replica).serve_forever()

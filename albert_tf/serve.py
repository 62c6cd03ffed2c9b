"""Serves a model over HTTP: `python -m albert_tf.serve --model=DIR --port=8501`.

    curl -d '{"instances": [{"text": "return the list"}]}' http://localhost:8501/v1/models/NAME:predict

The requests and answers are those of TensorFlow Serving's REST API. DIR is a fine-tuned or pre-trained model (see
`albert_tf.predict` for what each reads and answers), or a SavedModel. Where that has numbered versions, the newest one
answers, and a newer one takes its place as soon as it is there.
http://localhost:8501/ is a page to try it by hand; /healthz and /metrics are for machines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import flags, logging

from albert_tf.errors import InputError, run_main
from albert_tf.model_name import check_name

FLAGS = flags.FLAGS


def main(argv: Sequence[str]) -> int:
    from albert_tf.serving.settings import Settings

    settings = Settings(
        host=FLAGS.host,
        port=FLAGS.port,
        max_batch_rows=FLAGS.max_batch_rows,
        max_wait_seconds=FLAGS.max_wait_ms / 1000,
        max_queued_rows=FLAGS.max_queued_rows,
        max_rows=FLAGS.max_rows,
        max_row_characters=FLAGS.max_row_characters,
        max_answer_values=FLAGS.max_answer_values,
        max_body_bytes=int(FLAGS.max_body_mb * (1 << 20)),
        read_seconds=FLAGS.read_seconds,
        answer_seconds=FLAGS.answer_seconds,
        idle_seconds=FLAGS.idle_seconds,
        stop_seconds=FLAGS.stop_seconds,
        file_system_poll_wait_seconds=FLAGS.file_system_poll_wait_seconds,
    )
    name = FLAGS.model_name or os.path.basename(os.path.abspath(FLAGS.model))
    try:
        from albert_tf.serving import application, server
    except ImportError as error:
        raise InputError(f"{error.name} is not installed: pip install 'albert_tf[serve]'") from error
    if not check_name(name):
        raise InputError(f"the model cannot go by the name {name!r}: give --model_name of letters and digits")

    from albert_tf.serving import loading

    logging.set_verbosity(logging.INFO)
    backend = loading.load_backend(FLAGS.model, settings)
    directory = loading.directory_of_versions(FLAGS.model, settings)
    if directory is None:  # nothing will be loaded any more, and of requests there is a warning for each cut text
        logging.set_verbosity(logging.ERROR)

    def report(address: str) -> None:
        print(f"serving {name}, version {version}, at {address}/v1/models/{name}", flush=True)

    version = backend.version
    served = application.Server(backend, name, settings, directory)
    del backend  # it goes when a newer version takes its place
    server.run_to_end(served, settings, report)


def define_flags() -> None:
    flags.DEFINE_string("model", None, "A model, or the output directory of its run; or a SavedModel.")
    flags.DEFINE_string("model_name", "", "Its name in addresses; by default that of the directory.")
    flags.DEFINE_string("host", "127.0.0.1", "Where to listen; 0.0.0.0 is every address of this machine.")
    flags.DEFINE_integer("port", 8501, "0 is any free one.", lower_bound=0, upper_bound=65535)
    flags.DEFINE_integer("max_batch_rows", 32, "Rows that the model reads at once.", lower_bound=1)
    flags.DEFINE_float("max_wait_ms", 5.0, "Milliseconds that a row waits for others.", lower_bound=0)
    flags.DEFINE_integer("max_queued_rows", 4096, "More rows waiting are refused with 503.", lower_bound=1)
    flags.DEFINE_integer("max_rows", 1024, "Rows of one request; more are refused with 413.", lower_bound=1)
    flags.DEFINE_integer(
        "max_row_characters",
        1 << 16,
        "Of the texts of a row, and of a batch; a longer row is refused with 413.",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "max_answer_values", 1 << 22, "Numbers and texts of one answer; more are refused with 413.", lower_bound=1
    )
    flags.DEFINE_float("max_body_mb", 8.0, "MiB of one request; more are refused with 413.", lower_bound=1e-3)
    flags.DEFINE_float("read_seconds", 15.0, "For the body to arrive; then 408.", lower_bound=1e-3)
    flags.DEFINE_float("answer_seconds", 60.0, "From there to the answer; then 504.", lower_bound=1e-3)
    flags.DEFINE_float("idle_seconds", 60.0, "After which a connection without a request is closed.", lower_bound=1e-3)
    flags.DEFINE_float("stop_seconds", 30.0, "That requests at work may take after SIGTERM.", lower_bound=1e-3)
    flags.DEFINE_float(
        "file_system_poll_wait_seconds", 1.0, "From one look for new versions to the next; 0: none.", lower_bound=0
    )
    flags.mark_flags_as_required(["model"])


if __name__ == "__main__":
    define_flags()
    run_main(main)

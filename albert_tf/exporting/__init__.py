"""Models as files for a server, which need nothing of this package where they are loaded.

`saved_model` writes one; `python -m albert_tf.export` is the command. Imports run one way:

    forward                                             the one place where a model is called
    parts                                               what the signatures of a head are made of
    encoder, classifier, answers, choices, tags, fillings       texts in, answers out: one module for each kind of head
    answer_windows, answer_search, word_windows         what answers and tags need for long texts
    catalogue                                           head to module
    saved_model                                         the signatures as a directory
    warmup, serving_files, required_ops                 what a server wants beside it
    version_directories, source                         where it goes, and which model
    runtimes                                            files for other runtimes than TensorFlow, and comparisons
"""

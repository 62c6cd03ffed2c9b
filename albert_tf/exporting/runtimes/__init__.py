"""Files for other runtimes than TensorFlow: ids in, numbers out; and how far they are from the model they come from.

Imports run one way:

    onnx_graph                              nodes and shared constants, products in float32 or int8
    onnx_encoder, onnx_packed_encoder       the network written with them, for rows of one text or of several
    onnx_heads                              the heads
    onnx_file, openvino_files, tflite_file  a directory's model file, and the file as a function
    ids_outputs                             what every such file answers, and the function of the Keras model for it
    real_texts, check_inputs, comparison    texts of this Python to ids; both functions on them
    runtime_export                          a file that is compared before it appears
"""

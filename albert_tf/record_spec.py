"""What a pre-training record holds: the contract between data_prep and the input pipeline.

The names are those of the released create_pretraining_data.py, so that its files and ours can be read alike.
S is the sequence length, P the number of prediction slots of a record.
"""

from __future__ import annotations

INPUT_IDS = "input_ids"  # [S] int64: [CLS] A [SEP] B [SEP], padded with the pad id
INPUT_MASK = "input_mask"  # [S] int64: 1 on pieces, 0 on padding
SEGMENT_IDS = "segment_ids"  # [S] int64: 0 on [CLS] A [SEP], 1 on B [SEP], 0 on padding
TOKEN_BOUNDARY = "token_boundary"  # [S] int64: 1 where a word starts
MASKED_LM_POSITIONS = "masked_lm_positions"  # [P] int64: ascending, padded with 0
MASKED_LM_IDS = "masked_lm_ids"  # [P] int64: the pieces before masking, padded with 0
MASKED_LM_WEIGHTS = "masked_lm_weights"  # [P] float: 1 on predictions, 0 on padding
SENTENCE_ORDER_LABEL = "sentence_order_label"  # [1] int64: 1 = swapped (SOP) or random (NSP)
OLD_SENTENCE_LABEL = "next_sentence_labels"  # the released name of the same label; read, and written beside ours

SEQUENCE_FEATURES = (INPUT_IDS, INPUT_MASK, SEGMENT_IDS, TOKEN_BOUNDARY)
PREDICTION_FEATURES = (MASKED_LM_POSITIONS, MASKED_LM_IDS, MASKED_LM_WEIGHTS)

METADATA_FILE = "metadata.json"  # beside the shards: settings, counts per shard, statistics
METADATA_FORMAT = 1

"""Other people's files and ours: every form an ALBERT is stored in, read to one `Checkpoint` and written from one."""

"""Real runs with less and less memory: the instrument of this room. `duck` starts them, `worker` is one."""

/* A library to open: of two builds all lies at the same place, but the answers differ (-DANSWER=N). */
int answer(int by) { return by + ANSWER; }

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tierloom_fuzzed::feed("callgrind", bytes));

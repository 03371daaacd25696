//! For an arbitrary program of a log probe and arbitrary lines, decoding and
//! matching terminate without a panic, a program is encoded again to the same
//! bytes, and nothing of a line is left for the next one.
//!
//! The input is read as
//!
//! ```text
//! byte   0      1 .. 1+n         rest
//!        n      the program      lines, each up to a line feed
//! ```
//!
//! where `n` counts words of 2 bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_wire::service::log_pattern::{LogMatcher, LogPattern, LogPatternBuf};

fuzz_target!(|input: &[u8]| {
    let Some((&words, rest)) = input.split_first() else {
        return;
    };
    let (program, lines) = rest.split_at(rest.len().min(2 * usize::from(words)));
    let Ok(pattern) = LogPattern::from_bytes(program) else {
        return;
    };
    let instructions: Vec<_> = pattern.instructions().collect();
    let classes: Vec<_> = (0..).map_while(|class| pattern.class(class)).collect();
    let again = LogPatternBuf::new(&instructions, &classes).expect("it was valid");
    assert_eq!(again.as_pattern(), pattern);
    let mut matcher = LogMatcher::new(pattern);
    for line in lines.split(|&byte| byte == b'\n') {
        let matches = matcher.matches(line);
        assert_eq!(matches, LogMatcher::new(pattern).matches(line));
    }
});

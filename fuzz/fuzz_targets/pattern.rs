//! For arbitrary patterns and paths, matching terminates without a panic, and the
//! decision about a directory is consistent with those about its entries.
//!
//! The input is a path, a zero byte, the include lines, a zero byte, and the
//! exclude lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_wire::pattern::{Filter, Glob, Selection};

fuzz_target!(|input: &[u8]| {
    let mut fields = input.splitn(3, |&byte| byte == 0);
    let path = fields.next().unwrap_or_default();
    let include = fields.next().unwrap_or_default();
    let exclude = fields.next().unwrap_or_default();
    check_itself(path);
    if let Ok(glob) = Glob::new(include) {
        check_glob(&glob, path);
    }
    if let Ok(filter) = Filter::new(include, exclude) {
        check_filter(&filter, path);
    }
});

/// Returns the parent directories of a path, the nearest last.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
    slashes.map(|(end, _)| &path[..end])
}

/// Checks that a path with every byte escaped is a pattern that matches only itself.
fn check_itself(path: &[u8]) {
    let escape = |&byte: &u8| match byte {
        b'/' => vec![byte],
        _ => vec![b'\\', byte],
    };
    let pattern: Vec<u8> = path.iter().flat_map(escape).collect();
    if let Ok(glob) = Glob::new(&pattern) {
        assert_eq!(glob.literal_prefix(), path);
        assert!(glob.matches(path));
        assert!(!glob.could_match_below(path));
    }
}

fn check_glob(glob: &Glob, path: &[u8]) {
    if glob.matches(path) {
        assert!(glob.could_match_below(b""));
        assert!(parents(path).all(|parent| glob.could_match_below(parent)));
        let below = path.strip_prefix(glob.literal_prefix());
        assert!(below.is_some(), "outside of the literal prefix");
    }
}

fn check_filter(filter: &Filter, path: &[u8]) {
    let mut above = filter.select_root();
    for parent in parents(path).filter(|parent| !parent.is_empty()) {
        let selection = filter.select(parent, true);
        assert!(above != Selection::Skip || selection == Selection::Skip);
        above = selection;
    }
    let selection = filter.select(path, false);
    assert!(path.is_empty() || selection != Selection::Enter);
    assert!(above != Selection::Skip || selection == Selection::Skip);
}

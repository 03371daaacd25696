//! Large inputs, and inputs that are made to be slow. With a quadratic
//! algorithm or recursion these tests would not finish.

use super::super::hunks::hunks;

/// A deterministic sequence of pseudo-random numbers.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), move |last| {
        Some(
            last.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(seed | 1),
        )
    })
    .map(|number| number >> 33)
}

fn text(lines: usize, seed: u64, different: u64) -> Vec<u8> {
    let lines = numbers(seed).take(lines);
    lines.fold(Vec::new(), |mut text, number| {
        text.extend_from_slice(format!("{}\n", number % different).as_bytes());
        text
    })
}

#[test]
fn texts_with_nothing_in_common_are_replaced() {
    let old = text(50_000, 1, u64::MAX);
    let new = text(50_000, 2, u64::MAX);
    assert!(hunks(&old, &new, 3).unwrap().len() > old.len() + new.len());
}

#[test]
fn texts_of_the_same_lines_in_another_order_end() {
    for different in [2, 100, 4_000] {
        let old = text(4_000, 1, different);
        let new = text(4_000, 2, different);
        assert!(!hunks(&old, &new, 3).unwrap().is_empty());
    }
}

#[test]
fn a_text_turned_round_ends() {
    let lines: Vec<String> = (0..8_000).map(|line| format!("{line}\n")).collect();
    let reversed: Vec<String> = lines.iter().rev().cloned().collect();
    assert!(hunks(lines.concat().as_bytes(), reversed.concat().as_bytes(), 0).is_some());
}

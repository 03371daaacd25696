use proptest::prelude::*;

use super::super::edits::{Edit, edits};
use crate::patch::Lines;

fn edits_of(old: &str, new: &str) -> Vec<Edit> {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    edits(&Lines::split(old).unwrap(), &Lines::split(new).unwrap())
}

/// Returns how many lines the shortest edit script removes and adds.
fn fewest(old: &[&str], new: &[&str]) -> usize {
    let mut row: Vec<usize> = (0..=new.len()).collect();
    for (old_index, old_line) in old.iter().enumerate() {
        let mut next = vec![old_index + 1];
        for (new_index, new_line) in new.iter().enumerate() {
            next.push(if old_line == new_line {
                row[new_index]
            } else {
                1 + row[new_index + 1].min(next[new_index])
            });
        }
        row = next;
    }
    row[new.len()]
}

#[test]
fn equal_texts_have_no_edits() {
    assert_eq!(edits_of("", ""), []);
    assert_eq!(edits_of("1\n2\n", "1\n2\n"), []);
}

#[test]
fn a_missing_newline_is_an_edit() {
    let edit = Edit {
        old: 1..2,
        new: 1..2,
    };
    assert_eq!(edits_of("1\n2\n", "1\n2"), [edit]);
}

proptest! {
    #[test]
    fn edits_make_the_new_text_and_are_as_few_as_can_be(
        old in prop::collection::vec("[a-d]\n", 0..30),
        new in prop::collection::vec("[b-e]\n", 0..30),
    ) {
        let edits = edits_of(&old.concat(), &new.concat());
        let mut made = Vec::new();
        let mut done = 0;
        let mut count = 0;
        for edit in &edits {
            made.extend_from_slice(&old[done..edit.old.start]);
            prop_assert_eq!(made.len(), edit.new.start);
            made.extend_from_slice(&new[edit.new.clone()]);
            done = edit.old.end;
            count += edit.old.len() + edit.new.len();
        }
        made.extend_from_slice(&old[done..]);
        prop_assert_eq!(&made, &new);
        for pair in edits.windows(2) {
            prop_assert!(pair[0].old.end < pair[1].old.start);
        }
        let lines = |text: &'_ [String]| text.iter().map(|line| line.to_string()).collect::<Vec<_>>();
        let (old, new) = (lines(&old), lines(&new));
        let old: Vec<_> = old.iter().map(String::as_str).collect();
        let new: Vec<_> = new.iter().map(String::as_str).collect();
        prop_assert_eq!(count, fewest(&old, &new));
    }
}

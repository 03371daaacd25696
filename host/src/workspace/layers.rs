use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The layers of a workspace's disk. Each is above another one or above the image.
///
/// ```text
///  image ── 1 ── 2 ── 3   snapshots are layers that are not written any more;
///                └── 4    the workspace writes to the top, here 4
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LayerTree {
    /// The number of each layer, and that of the layer below it; `None` is the image.
    below: BTreeMap<u32, Option<u32>>,
    /// The layer that is written to.
    top: u32,
    /// No layer has had this number or a higher one.
    next: u32,
}

impl LayerTree {
    /// One layer above the image.
    pub(super) fn new() -> Self {
        Self {
            below: BTreeMap::from([(1, None)]),
            top: 1,
            next: 2,
        }
    }

    /// The layers below `layer` and itself, with a new one above it that is written to.
    pub(super) fn fork(&self, layer: u32) -> Self {
        let chain: BTreeSet<_> = self.chain(layer).collect();
        let mut fork = self.clone();
        fork.below.retain(|number, _| chain.contains(number));
        fork.start_above(layer);
        fork
    }

    /// Returns the layer that is written to.
    pub(super) fn top(&self) -> u32 {
        self.top
    }

    /// Returns all layers.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.below.keys().copied()
    }

    /// Returns the layer below another one; `None` is the image.
    pub(super) fn below(&self, layer: u32) -> Option<u32> {
        self.below.get(&layer).copied().flatten()
    }

    /// Returns a layer and all that are below it.
    pub(super) fn chain(&self, layer: u32) -> impl Iterator<Item = u32> {
        // Each layer has a higher number than the one below, as `is_valid` checks.
        std::iter::successors(Some(layer), |layer| self.below(*layer))
    }

    /// Returns the number that the next layer gets.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Adds a layer above another one, which is written to from now on.
    pub(super) fn start_above(&mut self, layer: u32) {
        self.below.insert(self.next, Some(layer));
        self.top = self.next;
        self.next += 1;
    }

    /// Removes the layers that neither the top nor these need. Returns whether there were
    /// any.
    pub(super) fn keep_only(&mut self, layers: impl IntoIterator<Item = u32>) -> bool {
        let wanted: Vec<_> = layers.into_iter().chain([self.top]).collect();
        let needed: BTreeSet<_> = wanted.into_iter().flat_map(|it| self.chain(it)).collect();
        let count = self.below.len();
        self.below.retain(|number, _| needed.contains(number));
        self.below.len() != count
    }

    /// Returns whether it is a tree.
    pub(super) fn is_valid(&self) -> bool {
        let is_layer = |number: &u32| self.below.contains_key(number);
        let is_above = |(number, below): (&u32, &Option<u32>)| {
            *number < self.next && below.as_ref().is_none_or(|it| it < number && is_layer(it))
        };
        is_layer(&self.top) && self.below.iter().all(is_above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(tree: &LayerTree, layer: u32) -> Vec<u32> {
        tree.chain(layer).collect()
    }

    #[test]
    fn layers_that_nothing_needs_are_removed() {
        let mut tree = LayerTree::new();
        tree.start_above(1);
        tree.start_above(2);
        assert_eq!(chain(&tree, tree.top()), [3, 2, 1]);
        // Back to layer 1. Nothing needs 3 any more, but 2 is wanted.
        tree.start_above(1);
        assert_eq!(chain(&tree, tree.top()), [4, 1]);
        assert!(tree.keep_only([2]));
        assert_eq!(tree.all().collect::<Vec<_>>(), [1, 2, 4]);
        assert!(!tree.keep_only([2]));
        assert!(tree.is_valid());
    }

    #[test]
    fn a_fork_has_the_layers_below_it_only_and_numbers_of_its_own() {
        let mut tree = LayerTree::new();
        tree.start_above(1);
        tree.start_above(2);
        let fork = tree.fork(1);
        assert_eq!(fork.all().collect::<Vec<_>>(), [1, 4]);
        assert_eq!(chain(&fork, fork.top()), [4, 1]);
        assert!(fork.is_valid());
    }

    #[test]
    fn what_is_not_a_tree_is_found() {
        for json in [
            r#"{"below": {"1": null}, "top": 2, "next": 3}"#,
            r#"{"below": {"1": 2, "2": 1}, "top": 1, "next": 3}"#,
            r#"{"below": {"1": 1}, "top": 1, "next": 3}"#,
            r#"{"below": {"2": 1}, "top": 2, "next": 3}"#,
            r#"{"below": {"1": null}, "top": 1, "next": 1}"#,
        ] {
            let tree: LayerTree = serde_json::from_str(json).unwrap();
            assert!(!tree.is_valid(), "{json}");
        }
    }
}

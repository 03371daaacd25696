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

/// The largest number of layers that a chain has, without the image. Every read of what
/// the upper ones do not have goes through all of them, and each is an open file.
pub(super) const MAX_CHAIN: usize = 16;

/// Longer chains are merged when the workspace starts. Not every one that could be, because
/// merging copies what is merged.
pub(super) const LONG_CHAIN: usize = 8;

/// Layers that become one.
///
/// ```text
///  1 ── 2 ── 3 ── 4      nothing needs 2 and 3 but as links
///  1 ───────────── 4     4 has what was in 2, 3 and 4
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayerMerge {
    /// The uppermost layer, which keeps its number.
    pub(super) into: u32,
    /// The layers directly below it that are only links, the uppermost first.
    pub(super) links: Vec<u32>,
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

    /// Returns which layers below the top can be merged. `needed` are those that must stay
    /// what they are, beside the top. Links are not needed, and have one layer above them.
    pub(super) fn mergeable(&self, needed: impl IntoIterator<Item = u32>) -> Vec<LayerMerge> {
        let needed: BTreeSet<_> = needed.into_iter().collect();
        let children = |layer| {
            let below = self.below.values();
            below.filter(|below| **below == Some(layer)).count()
        };
        let mut merges: Vec<LayerMerge> = Vec::new();
        for layer in self.chain(self.top) {
            let is_link = layer != self.top && !needed.contains(&layer) && children(layer) == 1;
            match merges.last_mut() {
                Some(merge) if is_link => merge.links.push(layer),
                _ => merges.push(LayerMerge {
                    into: layer,
                    links: Vec::new(),
                }),
            }
        }
        merges.retain(|merge| !merge.links.is_empty());
        merges
    }

    /// Removes the links of layers that were merged.
    pub(super) fn merge(&mut self, merge: &LayerMerge) {
        let Some(lowest) = merge.links.last() else {
            return;
        };
        let below = self.below(*lowest);
        self.below.insert(merge.into, below);
        self.below.retain(|number, _| !merge.links.contains(number));
    }

    /// Returns whether it is a tree that can grow.
    pub(super) fn is_valid(&self) -> bool {
        let is_layer = |number: &u32| self.below.contains_key(number);
        let is_above = |(number, below): (&u32, &Option<u32>)| {
            *number < self.next && below.as_ref().is_none_or(|it| it < number && is_layer(it))
        };
        // Else there is no number for another layer.
        let has_next = self.next < u32::MAX;
        has_next && is_layer(&self.top) && self.below.iter().all(is_above)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

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
    fn only_links_are_merged_into_what_is_above_them() {
        let mut tree = LayerTree::new();
        for layer in 1..8 {
            tree.start_above(layer);
        }
        let merge = |into, links: &[u32]| LayerMerge {
            into,
            links: links.to_vec(),
        };
        assert_eq!(tree.mergeable(1..8), []);
        // Runs of links, above and below ones that are needed.
        let merges = tree.mergeable([1, 4, 5]);
        assert_eq!(merges, [merge(8, &[7, 6]), merge(4, &[3, 2])]);
        // The lowest layer, too.
        assert_eq!(
            tree.mergeable([2]),
            [merge(8, &[7, 6, 5, 4, 3]), merge(2, &[1])]
        );
        for merge in &merges {
            tree.merge(merge);
        }
        assert_eq!(chain(&tree, tree.top()), [8, 5, 4, 1]);
        assert!(tree.is_valid());
        assert_eq!((tree.top(), tree.next()), (8, 9));
        assert_eq!(tree.mergeable([1, 4, 5]), []);
        tree.merge(&merge(4, &[1]));
        assert_eq!(tree.below(4), None);
    }

    #[test]
    fn a_layer_below_two_others_is_no_link_and_what_is_not_below_the_top_stays() {
        let mut tree = LayerTree::new();
        for layer in [1, 2, 3, 4, 3] {
            tree.start_above(layer);
        }
        // 1 ── 2 ── 3 ── 4 ── 5
        //           └── 6, the top
        let merges = tree.mergeable([5]);
        assert_eq!(
            merges,
            [LayerMerge {
                into: 3,
                links: vec![2, 1]
            }]
        );
        tree.merge(&merges[0]);
        assert_eq!(chain(&tree, 5), [5, 4, 3]);
        assert_eq!(chain(&tree, 6), [6, 3]);
        assert!(tree.is_valid());
    }

    /// What a workspace does.
    #[derive(Clone, Debug)]
    enum Action {
        Snapshot,
        Delete(Index),
        Reset(Index),
        Merge,
    }

    /// The file of a layer: what was written to it, and the file below.
    type Files = BTreeMap<u32, (Vec<u32>, Option<u32>)>;

    fn content(files: &Files, layer: Option<u32>) -> Vec<u32> {
        let Some(layer) = layer else {
            return Vec::new();
        };
        let (own, below) = &files[&layer];
        let mut all = content(files, *below);
        all.extend(own);
        all
    }

    proptest! {
        #[test]
        fn whatever_is_merged_all_snapshots_stay_the_same(
            actions in prop::collection::vec(
                prop_oneof![
                    4 => Just(Action::Snapshot),
                    2 => any::<Index>().prop_map(Action::Delete),
                    1 => any::<Index>().prop_map(Action::Reset),
                    1 => Just(Action::Merge),
                ],
                1..60,
            ),
        ) {
            let mut tree = LayerTree::new();
            let mut files: Files = BTreeMap::from([(1, (vec![1], None))]);
            // The layer and the content of each snapshot.
            let mut snapshots: Vec<(u32, Vec<u32>)> = Vec::new();
            for action in actions {
                let layers = |it: &[(u32, Vec<u32>)]| it.iter().map(|it| it.0).collect::<Vec<_>>();
                let before = content(&files, Some(tree.top()));
                match action {
                    Action::Snapshot => {
                        snapshots.push((tree.top(), before));
                        tree.start_above(tree.top());
                    }
                    Action::Delete(index) if !snapshots.is_empty() => {
                        snapshots.remove(index.index(snapshots.len()));
                        tree.keep_only(layers(&snapshots));
                    }
                    Action::Reset(index) if !snapshots.is_empty() => {
                        tree.start_above(index.get(&snapshots).0);
                        tree.keep_only(layers(&snapshots));
                    }
                    Action::Merge => {
                        for merge in tree.mergeable(layers(&snapshots)) {
                            let mut own = Vec::new();
                            let mut below = Some(merge.into);
                            for layer in [merge.into].iter().chain(&merge.links) {
                                prop_assert_eq!(below, Some(*layer));
                                let (data, next) = files[layer].clone();
                                own.splice(0..0, data);
                                below = next;
                            }
                            files.insert(merge.into, (own, below));
                            tree.merge(&merge);
                        }
                        prop_assert_eq!(content(&files, Some(tree.top())), before);
                        prop_assert_eq!(tree.mergeable(layers(&snapshots)), []);
                    }
                    Action::Delete(_) | Action::Reset(_) => {}
                }
                let top = tree.top();
                files.entry(top).or_insert((vec![top], tree.below(top)));
                files.retain(|number, _| tree.all().any(|layer| layer == *number));
                prop_assert!(tree.is_valid());
                for (layer, expected) in &snapshots {
                    prop_assert_eq!(&content(&files, Some(*layer)), expected);
                }
                for layer in tree.all() {
                    prop_assert_eq!(files[&layer].1, tree.below(layer));
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_tree_is_found() {
        for json in [
            r#"{"below": {"1": null}, "top": 2, "next": 3}"#,
            r#"{"below": {"1": 2, "2": 1}, "top": 1, "next": 3}"#,
            r#"{"below": {"1": 1}, "top": 1, "next": 3}"#,
            r#"{"below": {"2": 1}, "top": 2, "next": 3}"#,
            r#"{"below": {"1": null}, "top": 1, "next": 1}"#,
            // There would be no number for the next layer but one.
            r#"{"below": {"1": null}, "top": 1, "next": 4294967295}"#,
        ] {
            let tree: LayerTree = serde_json::from_str(json).unwrap();
            assert!(!tree.is_valid(), "{json}");
        }
    }
}

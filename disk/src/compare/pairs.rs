use std::{
    cmp::Ordering,
    collections::{HashSet, VecDeque},
    vec,
};

use vmcell_wire::pattern::{Filter, Selection};

use super::{
    node::Node,
    shared_blocks::SharedBlocks,
    side::{DiffSide, Name, Names},
};
use crate::{
    DiskError, DiskProblem, budget::Budget, entry_filter::is_left_out, ext4::Kind, path::push,
    traversal::directory_loop,
};

/// The entries of two trees at one path.
#[derive(Debug)]
pub(super) struct Pair {
    /// Relative to the roots of the trees.
    pub(super) path: Vec<u8>,
    pub(super) old: Option<Node>,
    pub(super) new: Option<Node>,
}

/// Traverses two trees in parallel.
pub(super) struct Pairs<'a> {
    old: &'a DiffSide<'a>,
    new: &'a DiffSide<'a>,
    filter: Filter,
    pub(super) budget: Budget,
    pub(super) shared: Option<SharedBlocks>,
    levels: Vec<Level>,
    path: Vec<u8>,
    /// Inodes of the directories that were entered, per side.
    entered: [HashSet<u32>; 2],
    problems: VecDeque<DiskProblem>,
}

struct Level {
    old: Option<Node>,
    new: Option<Node>,
    names: vec::IntoIter<NamePair>,
    path_length: usize,
    selection: Selection,
    memory: usize,
}

/// A name that occurs on one side or both.
struct NamePair {
    old: Option<Name>,
    new: Option<Name>,
}

enum Step {
    Pair(Pair),
    Nothing,
    End,
}

/// Approximate memory for remembering that a directory was entered.
const VISITED_MEMORY: usize = 16;

impl<'a> Pairs<'a> {
    pub(super) fn new(
        old: &'a DiffSide<'a>,
        new: &'a DiffSide<'a>,
        filter: Filter,
        mut budget: Budget,
    ) -> Result<Self, DiskError> {
        let tops = (old.top()?, new.top()?);
        let shared = match (old.as_disk(), new.as_disk()) {
            (Some(old), Some(new)) => SharedBlocks::find(old, new, &mut budget)?,
            _ => None,
        };
        let selection = filter.select_root();
        let mut pairs = Self {
            old,
            new,
            filter,
            budget,
            shared,
            levels: Vec::new(),
            path: Vec::new(),
            entered: Default::default(),
            problems: VecDeque::new(),
        };
        pairs.enter(Some(tops.0), Some(tops.1), selection)?;
        Ok(pairs)
    }

    /// Returns the next pair, or a problem.
    pub(super) fn next(&mut self) -> Option<Result<Pair, DiskProblem>> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Some(Err(problem));
            }
            match self.step() {
                Ok(Step::Pair(pair)) => return Some(Ok(pair)),
                Ok(Step::Nothing) => {}
                Ok(Step::End) => return None,
                Err(error) => return Some(Err(DiskProblem::new(&self.path, error))),
            }
        }
    }

    fn step(&mut self) -> Result<Step, DiskError> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(Step::End);
        };
        self.path.truncate(level.path_length);
        let Some(both) = level.names.next() else {
            self.budget.release(level.memory);
            self.levels.pop();
            return Ok(Step::Nothing);
        };
        let name = both.old.as_ref().or(both.new.as_ref());
        push(&mut self.path, name.map_or(&[], |name| &name.name));
        self.budget.check_path(&self.path)?;
        self.budget.check_time(&self.path)?;
        let path = &self.path;
        let node = |side: &DiffSide<'_>, directory: &Option<Node>, name: &Option<Name>| {
            let found = directory.as_ref().zip(name.as_ref());
            let found = found.map(|(directory, name)| side.node(directory, name, path));
            found.transpose()
        };
        let old = node(self.old, &level.old, &both.old);
        let nodes = old.and_then(|old| Ok((old, node(self.new, &level.new, &both.new)?)));
        let (old, new) = match nodes {
            Err(error) if error.is_local() && is_left_out(&self.filter, level.selection, path) => {
                return Ok(Step::Nothing);
            }
            nodes => nodes?,
        };

        let directory = |node: &Option<Node>| {
            let is_directory = |node: &Node| node.kind == Kind::Directory;
            node.clone().filter(is_directory)
        };
        let directories = (directory(&old), directory(&new));
        let has_directory = directories.0.is_some() || directories.1.is_some();
        let selection = self
            .filter
            .select_within(level.selection, path, has_directory);
        if selection == Selection::Skip {
            return Ok(Step::Nothing);
        }
        if has_directory && let Err(error) = self.enter(directories.0, directories.1, selection) {
            if !error.is_local() {
                return Err(error);
            }
            let problem = DiskProblem::new(&self.path, error);
            self.problems.push_back(problem);
        }
        if selection != Selection::Include {
            return Ok(Step::Nothing);
        }
        Ok(Step::Pair(Pair {
            path: self.path.clone(),
            old,
            new,
        }))
    }

    /// Enters a directory that exists on one side or both.
    fn enter(
        &mut self,
        old: Option<Node>,
        new: Option<Node>,
        selection: Selection,
    ) -> Result<(), DiskError> {
        self.budget.check_depth(self.levels.len(), &self.path)?;
        for (node, entered) in [&old, &new].into_iter().zip(&mut self.entered) {
            if let Some(inode) = node.as_ref().and_then(Node::inode)
                && !entered.insert(inode.number)
            {
                return Err(DiskError::at(&self.path, directory_loop(inode)));
            }
        }
        self.budget.reserve(2 * VISITED_MEMORY, &self.path)?;
        let (names, memory) = if self.is_shared(&old, &new) {
            let names = self.names(self.new, &new)?;
            self.budget.reserve(names.memory, &self.path)?;
            let twice = |name: Name| NamePair {
                old: Some(name.clone()),
                new: Some(name),
            };
            let memory = 2 * names.memory;
            (names.names.into_iter().map(twice).collect(), memory)
        } else {
            let old_names = self.names(self.old, &old)?;
            let new_names = self.names(self.new, &new)?;
            let memory = old_names.memory + new_names.memory;
            (merge_names(old_names, new_names), memory)
        };
        self.levels.push(Level {
            old,
            new,
            names: names.into_iter(),
            path_length: self.path.len(),
            selection,
            memory,
        });
        Ok(())
    }

    /// Returns whether both directories are certain to have the same names and
    /// inodes.
    fn is_shared(&self, old: &Option<Node>, new: &Option<Node>) -> bool {
        let old = self.old.as_disk().zip(old.as_ref().and_then(Node::inode));
        let new = self.new.as_disk().zip(new.as_ref().and_then(Node::inode));
        match (&self.shared, old, new) {
            (Some(shared), Some(old), Some(new)) => shared.is_same(old, new),
            _ => false,
        }
    }

    /// Returns the names of a directory. Problems are queued.
    fn names(&mut self, side: &DiffSide<'_>, node: &Option<Node>) -> Result<NameList, DiskError> {
        let Some(node) = node else {
            return Ok(NameList::default());
        };
        let Names {
            names,
            problems,
            memory,
        } = side.names(node, &self.path, &mut self.budget)?;
        let is_partial = !problems.is_empty();
        let path = &self.path;
        let problems = problems.into_iter();
        self.problems
            .extend(problems.map(|error| DiskProblem::new(path, error)));
        Ok(NameList {
            names,
            is_partial,
            memory,
        })
    }
}

/// The names of a directory, and whether some could not be read.
#[derive(Default)]
struct NameList {
    names: Vec<Name>,
    is_partial: bool,
    memory: usize,
}

/// Merges two sorted lists. If the directory is damaged on one side, names that
/// only the other side has are dropped: they may have existed.
fn merge_names(old: NameList, new: NameList) -> Vec<NamePair> {
    let (is_old_partial, is_new_partial) = (old.is_partial, new.is_partial);
    let mut olds = old.names.into_iter().peekable();
    let mut news = new.names.into_iter().peekable();
    let mut names = Vec::new();
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return names,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.name.cmp(&new.name),
        };
        let both = NamePair {
            old: olds.next_if(|_| order.is_le()),
            new: news.next_if(|_| order.is_ge()),
        };
        let is_unknown = match order {
            Ordering::Less => is_new_partial,
            Ordering::Greater => is_old_partial,
            Ordering::Equal => false,
        };
        if !is_unknown {
            names.push(both);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn name_list(names: &BTreeSet<u8>, is_partial: bool) -> NameList {
        let name = |letter: &u8| Name {
            name: vec![*letter],
            inode: 0,
        };
        NameList {
            names: names.iter().map(name).collect(),
            is_partial,
            memory: 0,
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_once_in_order_unless_nobody_can_tell(
            old: BTreeSet<u8>,
            new: BTreeSet<u8>,
            is_old_partial: bool,
            is_new_partial: bool,
        ) {
            let pairs = merge_names(name_list(&old, is_old_partial), name_list(&new, is_new_partial));
            let letter = |name: &Option<Name>| name.as_ref().map(|name| name.name[0]);
            let found: Vec<_> = pairs
                .iter()
                .map(|both| (letter(&both.old), letter(&both.new)))
                .collect();
            let expected: Vec<_> = old
                .union(&new)
                .map(|name| (old.get(name).copied(), new.get(name).copied()))
                .filter(|(_, new)| new.is_some() || !is_new_partial)
                .filter(|(old, _)| old.is_some() || !is_old_partial)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}

//! Dependencies between services, without I/O.

use alloc::{collections::BTreeSet, string::String, vec, vec::Vec};

/// The state of the services that another one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// All of them are ready.
    Met,
    /// This one is not ready yet.
    Missing(String),
    /// This one is missing, stopped or failed, and will not become ready by
    /// itself.
    Failed(String),
}

/// Returns the dependency cycle through a service, if there is one: `web -> db
/// -> web`. `needs_of` returns what the others need.
pub(super) fn find_cycle<'a>(
    name: &'a str,
    needs: &'a [String],
    needs_of: impl Fn(&str) -> &'a [String],
) -> Option<String> {
    // The path of the depth-first search: names, and their needs that are not
    // visited yet.
    let mut path: Vec<(&str, &[String])> = vec![(name, needs)];
    let mut seen = BTreeSet::new();
    while let Some((_, left)) = path.last_mut() {
        let Some((next, rest)) = left.split_first() else {
            path.pop();
            continue;
        };
        *left = rest;
        if next == name {
            let mut names: Vec<&str> = path.iter().map(|(name, _)| *name).collect();
            names.push(name);
            return Some(names.join(" -> "));
        }
        if seen.insert(next.as_str()) {
            path.push((next, needs_of(next)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, format};

    use proptest::prelude::*;

    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().copied().map(String::from).collect()
    }

    fn cycle(known: &[(&'static str, &[&str])], name: &str, needs: &[&str]) -> Option<String> {
        let known: BTreeMap<&str, Vec<String>> = known
            .iter()
            .map(|(name, needs)| (*name, names(needs)))
            .collect();
        let needs = names(needs);
        find_cycle(name, &needs, |name| {
            known.get(name).map(Vec::as_slice).unwrap_or_default()
        })
    }

    #[test]
    fn a_cycle_is_told_name_by_name() {
        assert_eq!(cycle(&[], "a", &["a"]).as_deref(), Some("a -> a"));
        assert_eq!(
            cycle(&[("db", &["web"])], "web", &["log", "db"]).as_deref(),
            Some("web -> db -> web")
        );
        let chain: &[(&str, &[&str])] = &[("b", &["x", "c"]), ("c", &["d"]), ("d", &["a"])];
        assert_eq!(
            cycle(chain, "a", &["b"]).as_deref(),
            Some("a -> b -> c -> d -> a")
        );
    }

    #[test]
    fn a_diamond_is_no_cycle() {
        let diamond: &[(&str, &[&str])] = &[("b", &["d"]), ("c", &["d"]), ("d", &[])];
        assert_eq!(cycle(diamond, "a", &["b", "c"]), None);
        // Nor is a cycle among others.
        assert_eq!(cycle(&[("b", &["c"]), ("c", &["b"])], "a", &["b"]), None);
    }

    proptest! {
        /// Compares with a plain reachability search.
        #[test]
        fn cycles_are_found_exactly_where_they_are(
            edges in prop::collection::vec((0..12usize, 0..12usize), 0..40),
        ) {
            let name = |number: usize| format!("s{number}");
            let mut graph: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (from, to) in &edges {
                graph.entry(name(*from)).or_default().push(name(*to));
            }
            let of = |name: &str| graph.get(name).cloned().unwrap_or_default();
            let mut reached: Vec<String> = of("s0");
            let mut place = 0;
            while place < reached.len() {
                for next in of(&reached[place].clone()) {
                    if !reached.contains(&next) {
                        reached.push(next);
                    }
                }
                place += 1;
            }
            let needs = of("s0");
            let found = find_cycle("s0", &needs, |name| {
                graph.get(name).map(Vec::as_slice).unwrap_or_default()
            });
            prop_assert_eq!(found.is_some(), reached.contains(&name(0)));
            if let Some(path) = found {
                let path: Vec<&str> = path.split(" -> ").collect();
                for pair in path.windows(2) {
                    prop_assert!(of(pair[0]).contains(&String::from(pair[1])));
                }
            }
        }
    }
}

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path};

use proptest::prelude::*;

use super::{received, sent, slices, snapshot::name, snapshot::snapshot};

#[derive(Clone, Debug)]
enum Node {
    Directory(BTreeMap<Vec<u8>, Node>),
    File(usize),
    Symlink(Vec<u8>),
    /// A hard link to the last file before it.
    HardLink,
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..12)
        .prop_map(|bytes| -> Vec<u8> {
            let allowed = |byte: &u8| !matches!(byte, 0 | b'/' | b'.');
            bytes.into_iter().filter(allowed).collect()
        })
        .prop_filter("a name is needed", |name| !name.is_empty())
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        prop_oneof![0..100_usize, 32_760..32_780_usize, 262_130..262_150_usize]
            .prop_map(Node::File),
        prop::collection::vec(1..255_u8, 1..50).prop_map(Node::Symlink),
        Just(Node::HardLink),
    ];
    leaf.prop_recursive(4, 30, 6, |inner| {
        prop::collection::btree_map(any_name(), inner, 0..6).prop_map(Node::Directory)
    })
}

fn make(node: &Node, path: &Path, last: &mut Option<std::path::PathBuf>) {
    match (node, &last) {
        (Node::Directory(entries), _) => {
            fs::create_dir(path).unwrap();
            for (entry, node) in entries {
                make(node, &path.join(name(entry)), last);
            }
        }
        (Node::Symlink(target), _) => symlink(Path::new(&name(target)), path).unwrap(),
        (Node::HardLink, Some(file)) => fs::hard_link(file, path).unwrap(),
        (Node::HardLink, None) => fs::write(path, "").unwrap(),
        (Node::File(size), _) => {
            fs::write(path, super::round_trip::pattern(*size)).unwrap();
            *last = Some(path.to_owned());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_arrives_however_its_stream_is_cut(
        tree in node(),
        cuts in prop::collection::vec(1..5000_usize, 1..50),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        make(&tree, &from, &mut None);
        let (pieces, _) = sent(&from);
        let stream = slices(&pieces).collect::<Vec<_>>().concat();
        let mut rest = &stream[..];
        let mut cut_up = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            cut_up.push(piece);
            rest = after;
        }
        received(cut_up, &to).unwrap();
        prop_assert_eq!(snapshot(&from), snapshot(&to));
    }
}

use std::collections::BTreeSet;

use vmcell_disk::WalkOptions;

use crate::sample::{Sample, debugfs_output};

#[test]
fn a_directory_is_what_debugfs_lists() {
    let sample = Sample::new();
    let disk = sample.open();
    for directory in ["/", "/src", "/many", "/etc"] {
        // Lines are /inode/mode/uid/gid/name/size/
        let listed: BTreeSet<_> = debugfs_output(&sample.image(), &format!("ls -p {directory}"))
            .lines()
            .filter_map(|line| {
                let fields: Vec<_> = line.split('/').map(str::to_owned).collect();
                let [_, inode, mode, _, _, name, ..] = &fields[..] else {
                    return None;
                };
                let is_listed = name != "." && name != "..";
                is_listed.then(|| (name.clone(), inode.clone(), mode.clone()))
            })
            .collect();
        let walked: BTreeSet<_> = disk
            .walk(directory, WalkOptions::new().depth(1))
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let kind = match entry.kind.letter() {
                    'd' => 0o040_000,
                    'l' => 0o120_000,
                    'p' => 0o010_000,
                    _ => 0o100_000,
                };
                let name = entry.name().unwrap().to_str().unwrap().to_owned();
                let mode = format!("{:06o}", kind | entry.mode);
                (name, entry.inode.to_string(), mode)
            })
            .collect();
        assert_eq!(listed, walked);
    }
}

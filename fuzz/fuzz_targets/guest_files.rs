//! For arbitrary databases of users and an arbitrary kernel log in a guest, the agent's
//! readers do not panic, and nobody is in a group that does not list them.
//!
//! The input has these parts, with a zero byte between them: the user that is looked for,
//! passwd(5), group(5), and a record of the kernel's log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_agent::fuzzing::{find_user, oom_killed_process};

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(4, |byte| *byte == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (wanted, passwd, group, record) = (next(), next(), next(), next());
    if let Some(pid) = oom_killed_process(record) {
        let text = String::from_utf8_lossy(record);
        assert!(text.contains("ut of memory: Killed process "), "{text:?}");
        assert!(record.len() > pid.to_string().len());
    }
    let Ok(wanted) = std::str::from_utf8(wanted) else {
        return;
    };
    let Some((uid, gid, groups)) = find_user(wanted, passwd, group) else {
        return;
    };
    assert!(uid != u32::MAX && gid != u32::MAX && groups.len() <= 64);
    let user = wanted.split(':').next().unwrap_or_default();
    let accounts = passwd.split(|byte| *byte == b'\n');
    let named = accounts.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number = std::str::from_utf8(fields.nth(1)?).ok()?;
        (number.parse() == Ok(uid)).then_some(name)
    });
    let names: Vec<&[u8]> = named.chain([user.as_bytes()]).collect();
    for supplementary in groups {
        let lists = |line: &[u8]| {
            let fields: Vec<_> = line.split(|byte| *byte == b':').collect();
            let [_, _, number, members, ..] = fields[..] else {
                return false;
            };
            let number = std::str::from_utf8(number).ok();
            number.and_then(|it| it.parse().ok()) == Some(supplementary)
                && members
                    .split(|byte| *byte == b',')
                    .any(|it| names.contains(&it))
        };
        let mut lines = group.split(|byte| *byte == b'\n');
        assert!(
            lines.any(lists),
            "nobody says that it is in group {supplementary}"
        );
    }
});

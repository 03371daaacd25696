//! Which symbolic links are followed: those of root, and those that lead to an
//! entry of their own owner.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown, lchown, symlink},
    },
    path::Path,
};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with};
use vmcell_wire::files::{
    Content, FileOperation, Metadata, Owner, Receive, Send, Time, TreeRecord, Walk, WriteMode,
    Xattrs, record,
};

use super::{
    confinement::{everything, everything_by_name},
    test_env::{DENIED, INVALID, NOT_FOUND, Refusal, TestEnv, is_root, refused},
};
use crate::race::race_against;

const ALICE: u32 = 1234;
const BOB: u32 = 1235;

/// Creates a link that belongs to a user.
fn link_of(env: &TestEnv, user: u32, path: &str, target: impl AsRef<Path>) {
    symlink(target, env.at(path)).unwrap();
    lchown(env.at(path), Some(user), Some(user)).unwrap();
}

fn directory_of(env: &TestEnv, user: u32, path: &str) {
    fs::create_dir(env.at(path)).unwrap();
    chown(env.at(path), Some(user), Some(user)).unwrap();
}

fn file_of(env: &TestEnv, user: u32, path: &str, text: &str) {
    fs::write(env.at(path), text).unwrap();
    chown(env.at(path), Some(user), Some(user)).unwrap();
}

/// Creates a directory of root and one of a user.
fn env_with_users() -> TestEnv {
    let env = TestEnv::new();
    directory_of(&env, 0, "etc");
    file_of(&env, 0, "etc/file", "root's");
    file_of(&env, 0, "file", "root's too");
    directory_of(&env, ALICE, "home");
    directory_of(&env, ALICE, "home/own");
    file_of(&env, ALICE, "home/own/file", "alice's");
    env
}

/// Operations that take a path and are not in the tests of confinement.
fn everything_else(path: &[u8]) -> Vec<FileOperation<'_>> {
    let walk = Walk {
        path,
        depth: 1,
        top: true,
        glob: b"",
        include: b"",
        exclude: b"",
        sorted: false,
        digest: true,
        names: false,
    };
    let watch = FileOperation::Watch {
        path,
        recursive: true,
        debounce_ms: 0,
    };
    vec![
        FileOperation::Walk(walk),
        FileOperation::Usage { path },
        watch,
    ]
}

fn send(path: &[u8]) -> FileOperation<'_> {
    FileOperation::Send(Send {
        path,
        include: b"",
        exclude: b"",
    })
}

/// A file, as the only record of a tree.
fn received_file() -> Vec<u8> {
    let meta = Metadata {
        mode: 0o644,
        uid: 0,
        gid: 0,
        modified: Time::default(),
        xattrs: Xattrs::NONE,
    };
    let mut bytes = Vec::new();
    let content = Content::Inline(b"x");
    let name = b"";
    record::encode(
        &mut bytes,
        &TreeRecord::File {
            name,
            meta,
            content,
        },
    )
    .unwrap();
    bytes
}

/// A directory, as the only record of a tree.
fn received_directory() -> Vec<u8> {
    let mut bytes = Vec::new();
    let (name, meta) = (&b""[..], None);
    record::encode(&mut bytes, &TreeRecord::Enter { name, meta }).unwrap();
    record::encode(&mut bytes, &TreeRecord::Leave).unwrap();
    bytes
}

fn receive(path: &[u8]) -> FileOperation<'_> {
    FileOperation::Receive(Receive {
        path,
        owner: Owner::OfDirectory,
        sync: false,
    })
}

fn write_in_place(env: &mut TestEnv, path: &str, write_mode: WriteMode) -> Result<(), Refusal> {
    env.write_with(path, "x", |write| write.write_mode = write_mode)
        .map(|_| ())
}

#[test]
fn nothing_follows_a_link_of_another_user() {
    if !is_root() {
        return;
    }
    let mut env = env_with_users();
    link_of(&env, ALICE, "home/etc", "../etc");
    link_of(&env, ALICE, "home/passwd", "../etc/file");
    link_of(&env, ALICE, "home/dangling", "../etc/new");
    link_of(&env, ALICE, "home/deep", "../etc/new/deep/file");
    link_of(&env, ALICE, "home/up", "..");
    // A link of root that leads through one of a user is rejected too.
    link_of(&env, 0, "shortcut", "home/etc");
    // So is one of the same user.
    link_of(&env, ALICE, "home/again", "etc");
    // So is a link of one user to an entry of another user.
    link_of(&env, BOB, "home/bobs", "own");
    let before = env.listing();
    let mode = fs::metadata(env.at("etc")).unwrap().permissions().mode();

    for path in ["home/etc", "home/up", "shortcut", "home/again", "home/bobs"] {
        for operation in everything(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
        }
        for operation in everything_else(path.as_bytes()) {
            assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
        }
        let received = env.perform_with(receive(path.as_bytes()), &received_directory());
        assert_eq!(refused(received), DENIED, "{path}");

        for name in ["file", "new", "new/deep"] {
            let path = format!("{path}/{name}");
            for operation in everything(path.as_bytes()) {
                assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
            }
            for operation in everything_by_name(path.as_bytes()) {
                assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
            }
            for operation in everything_else(path.as_bytes()) {
                assert_eq!(refused(env.perform(operation)), DENIED, "{operation:?}");
            }
            assert_eq!(
                refused(env.perform(send(path.as_bytes()))),
                DENIED,
                "{path}"
            );
            assert_eq!(refused(env.write(&path, "x")), DENIED, "{path}");
            let received = env.perform_with(receive(path.as_bytes()), &received_file());
            assert_eq!(refused(received), DENIED, "{path}");
        }
    }
    for path in ["home/passwd", "home/dangling", "home/deep"] {
        let writes = [
            env.write(path, "x").map(|_| ()),
            write_in_place(&mut env, path, WriteMode::Append),
            write_in_place(&mut env, path, WriteMode::At(0)),
        ];
        for written in writes {
            // A path through a missing directory is not found.
            let expected = match path {
                "home/deep" => NOT_FOUND,
                _ => DENIED,
            };
            assert_eq!(refused(written), expected, "{path}");
        }
    }
    assert_eq!(env.listing(), before);
    assert_eq!(fs::read(env.at("etc/file")).unwrap(), b"root's");
    assert_eq!(fs::read(env.at("home/own/file")).unwrap(), b"alice's");
    let now = fs::metadata(env.at("etc")).unwrap();
    assert_eq!((now.permissions().mode(), now.uid()), (mode, 0));
}

#[test]
fn where_the_root_is_everything_a_link_of_another_user_is_not_followed_either() {
    if !is_root() {
        return;
    }
    let mut env = env_with_users();
    link_of(&env, ALICE, "home/etc", env.at("etc"));
    link_of(&env, ALICE, "home/mine", env.at("home/own"));
    let everywhere = Path::new("/");
    for (path, expected) in [("home/etc/file", None), ("home/mine/file", Some("alice's"))] {
        let path = env.at(path);
        let read = FileOperation::Read {
            path: path.as_os_str().as_bytes(),
            offset: 0,
            length: 100,
        };
        let read = env.work_in(everywhere, read, b"");
        match expected {
            Some(text) => assert_eq!(read.unwrap(), text.as_bytes()),
            None => assert_eq!(refused(read), DENIED),
        }
    }
}

#[test]
fn the_owner_that_is_asked_for_makes_no_difference() {
    if !is_root() {
        return;
    }
    let mut env = env_with_users();
    link_of(&env, ALICE, "home/etc", "../etc");
    // Otherwise the user would own a file in a directory of root.
    let written = env.write_with("home/etc/new", "x", |write| {
        write.owner = Owner::User("1234");
    });
    assert_eq!(refused(written), DENIED);
    assert!(!env.at("etc/new").exists());
}

#[test]
fn a_users_links_to_what_is_the_users_are_followed() {
    if !is_root() {
        return;
    }
    let mut env = env_with_users();
    link_of(&env, ALICE, "home/current", "own");
    link_of(&env, ALICE, "home/latest", "own/file");
    link_of(&env, ALICE, "home/new", "own/new");
    link_of(&env, ALICE, "home/roundabout", "../shortcut/file");
    link_of(&env, 0, "shortcut", "home/current");
    for path in [
        "home/current/file",
        "home/latest",
        "home/roundabout",
        "shortcut/file",
        "shortcut/../current//./file",
    ] {
        assert_eq!(env.read(path).unwrap(), b"alice's", "{path}");
    }
    env.write("home/new", "written").unwrap();
    env.write("home/current/made/below", "written").unwrap();
    env.write("home/latest", "replaced").unwrap();
    write_in_place(&mut env, "home/latest", WriteMode::Append).unwrap();
    assert_eq!(fs::read(env.at("home/own/file")).unwrap(), b"replacedx");
    for path in ["new", "file", "made", "made/below"] {
        let made = fs::symlink_metadata(env.at("home/own").join(path)).unwrap();
        assert_eq!(made.uid(), ALICE, "{path}");
    }
    let still = fs::symlink_metadata(env.at("home/latest")).unwrap();
    assert!(still.is_symlink());
}

/// Compares the agent's resolution with the kernel's.
#[test]
fn links_lead_where_the_kernel_says_they_do() {
    let mut env = TestEnv::new();
    for (place, directory) in ["a", "b", "a/b", "a/b/c"].into_iter().enumerate() {
        fs::create_dir(env.at(directory)).unwrap();
        let mode = fs::Permissions::from_mode(0o700 + place as u32 + 1);
        fs::set_permissions(env.at(directory), mode).unwrap();
        fs::write(env.at(directory).join("f"), "x".repeat(place + 1)).unwrap();
    }
    for (link, target) in [
        ("l", "a/b"),
        ("a/l", "../b/"),
        ("a/b/l", "../../l/c/./"),
        ("b/l", "f"),
        ("a/b/c/l", "../../../.."),
        ("loop", "a/../loop"),
        ("a/loop", "/a"),
    ] {
        symlink(target, env.at(link)).unwrap();
    }
    let names = ["a", "b", "c", "f", "l", "loop", "..", ".", ""];
    let mut followed = 0;
    for first in names {
        for second in names {
            for third in names {
                let path = format!("x/{first}/{second}/{third}");
                let path = path.trim_start_matches(['x', '/']);
                for follow in [true, false] {
                    followed += usize::from(compare_with_kernel(&mut env, path, follow));
                }
            }
        }
    }
    assert!(followed > 100, "only {followed} paths led anywhere");
}

/// Returns whether the path can be resolved.
fn compare_with_kernel(env: &mut TestEnv, path: &str, follow: bool) -> bool {
    let root = rustix::fs::open(env.root(), OFlags::PATH, Mode::empty()).unwrap();
    let mut flags = OFlags::PATH;
    flags.set(OFlags::NOFOLLOW, !follow);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let asked = if path.is_empty() { "." } else { path };
    let ask = || openat2(&root, asked, flags, Mode::empty(), resolve);
    let mut kernel = ask();
    // The kernel returns EAGAIN while anything on the machine is renamed.
    while matches!(kernel, Err(rustix::io::Errno::AGAIN)) {
        kernel = ask();
    }
    let kernel = kernel.map(|found| {
        let status = rustix::fs::fstat(found).unwrap();
        // Directories have different permissions, and files different sizes.
        let size = if status.st_mode & 0o170_000 == 0o040_000 {
            0
        } else {
            status.st_size as u64
        };
        (status.st_mode & 0o7777, size)
    });
    let stat = FileOperation::Stat {
        path: path.as_bytes(),
        follow,
        digest: false,
    };
    let agent = env.entry(stat).map(|entry| {
        let is_directory = entry.kind == vmcell_wire::files::FileKind::Directory;
        (
            u32::from(entry.mode),
            if is_directory { 0 } else { entry.size },
        )
    });
    match (kernel, agent) {
        (Ok(kernel), Ok(agent)) => assert_eq!(agent, kernel, "{path} {follow}"),
        (Err(kernel), Err(agent)) => {
            // The failure for leaving the root has no error number.
            let left = agent.kind == DENIED && agent.errno == 0;
            let errno = if left { 18 } else { agent.errno };
            assert_eq!(i32::from(errno), kernel.raw_os_error(), "{path} {follow}");
            return false;
        }
        (kernel, agent) => panic!("{path} {follow}: {kernel:?}, but {agent:?}"),
    }
    true
}

#[test]
fn forty_links_are_followed_and_one_more_is_not() {
    let mut env = TestEnv::new();
    fs::write(env.at("0"), "the end").unwrap();
    for link in 1..=41 {
        symlink((link - 1).to_string(), env.at(link.to_string())).unwrap();
    }
    assert_eq!(env.read("40").unwrap(), b"the end");
    assert_eq!(refused(env.read("41")), INVALID);
    assert_eq!(refused(env.write("41", "x")), INVALID);
}

#[test]
fn links_of_the_kernel_that_jump_are_not_followed() {
    let mut env = TestEnv::new();
    let stat = |path| FileOperation::Stat {
        path,
        follow: true,
        digest: false,
    };
    let everywhere = Path::new("/");
    assert!(
        env.work_in(everywhere, stat(b"proc/self/status"), b"")
            .is_ok()
    );
    for path in [
        &b"proc/self/root/etc"[..],
        b"proc/self/cwd",
        b"proc/self/fd/0",
    ] {
        let found = env.work_in(everywhere, stat(path), b"");
        assert_eq!(refused(found), INVALID);
    }
}

#[test]
fn a_user_who_swaps_what_a_link_leads_to_wins_nothing() {
    if !is_root() {
        return;
    }
    let mut env = env_with_users();
    link_of(&env, ALICE, "home/one", "own");
    link_of(&env, ALICE, "home/two", "../etc");
    let (one, two) = (env.at("home/one"), env.at("home/two"));
    let swap = || renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).unwrap();
    let (mut done, mut denied) = (0, 0);
    race_against(swap, || {
        // Both must be seen, however the two threads are scheduled.
        for round in 0..20_000 {
            match env.write("home/one/file", "x") {
                Ok(_) => done += 1,
                Err(refused) if refused.kind == DENIED => denied += 1,
                Err(refused) => panic!("{refused:?}"),
            }
            if round > 2000 && done > 100 && denied > 100 {
                break;
            }
        }
    });
    assert!(done > 0 && denied > 0, "{done} done, {denied} denied");
    assert_eq!(fs::read(env.at("etc/file")).unwrap(), b"root's");
}

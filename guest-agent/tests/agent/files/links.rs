//! Which symbolic links are followed: those of root, and those that lead their
//! owner to what is theirs anyway.

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
    Content, Meta, Owner, Receive, Send, Time, TreeRecord, Walk, Work, WritePlace, Xattrs, record,
};

use super::{
    confinement::{everything, everything_by_name},
    site::{DENIED, INVALID, NOT_FOUND, Refused, Site, is_root, refused},
};
use crate::concurrent::with_concurrent;

const ALICE: u32 = 1234;
const BOB: u32 = 1235;

/// Makes a link that belongs to a user.
fn link_of(site: &Site, user: u32, path: &str, target: impl AsRef<Path>) {
    symlink(target, site.at(path)).unwrap();
    lchown(site.at(path), Some(user), Some(user)).unwrap();
}

fn directory_of(site: &Site, user: u32, path: &str) {
    fs::create_dir(site.at(path)).unwrap();
    chown(site.at(path), Some(user), Some(user)).unwrap();
}

fn file_of(site: &Site, user: u32, path: &str, text: &str) {
    fs::write(site.at(path), text).unwrap();
    chown(site.at(path), Some(user), Some(user)).unwrap();
}

/// A directory of root, and one of a user.
fn site() -> Site {
    let site = Site::new();
    directory_of(&site, 0, "etc");
    file_of(&site, 0, "etc/file", "root's");
    file_of(&site, 0, "file", "root's too");
    directory_of(&site, ALICE, "home");
    directory_of(&site, ALICE, "home/own");
    file_of(&site, ALICE, "home/own/file", "alice's");
    site
}

/// What takes a path, beside what the tests of confinement have.
fn everything_else(path: &[u8]) -> Vec<Work<'_>> {
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
    let watch = Work::Watch {
        path,
        recursive: true,
        debounce_ms: 0,
    };
    vec![Work::Walk(walk), Work::Usage { path }, watch]
}

fn send(path: &[u8]) -> Work<'_> {
    Work::Send(Send {
        path,
        include: b"",
        exclude: b"",
    })
}

/// A file, as the only record of a tree.
fn received_file() -> Vec<u8> {
    let meta = Meta {
        mode: 0o644,
        uid: 0,
        gid: 0,
        modified: Time::default(),
        xattrs: Xattrs::NONE,
    };
    let mut bytes = Vec::new();
    let content = Content::Whole(b"x");
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

fn receive(path: &[u8]) -> Work<'_> {
    Work::Receive(Receive {
        path,
        owner: Owner::OfDirectory,
        sync: false,
    })
}

fn write_in_place(site: &mut Site, path: &str, place: WritePlace) -> Result<(), Refused> {
    site.write_with(path, "x", |write| write.place = place)
        .map(|_| ())
}

#[test]
fn nothing_follows_a_link_of_another_user() {
    if !is_root() {
        return;
    }
    let mut site = site();
    link_of(&site, ALICE, "home/etc", "../etc");
    link_of(&site, ALICE, "home/passwd", "../etc/file");
    link_of(&site, ALICE, "home/dangling", "../etc/new");
    link_of(&site, ALICE, "home/deep", "../etc/new/deep/file");
    link_of(&site, ALICE, "home/up", "..");
    // A link of root may lead through one of a user, and is as good as that.
    link_of(&site, 0, "shortcut", "home/etc");
    // So may one of the same user.
    link_of(&site, ALICE, "home/again", "etc");
    // Neither does it matter that the link is another user's own.
    link_of(&site, BOB, "home/bobs", "own");
    let before = site.listing();
    let mode = fs::metadata(site.at("etc")).unwrap().permissions().mode();

    for path in ["home/etc", "home/up", "shortcut", "home/again", "home/bobs"] {
        for work in everything(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
        }
        for work in everything_else(path.as_bytes()) {
            assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
        }
        let received = site.work_with(receive(path.as_bytes()), &received_directory());
        assert_eq!(refused(received), DENIED, "{path}");

        for name in ["file", "new", "new/deep"] {
            let path = format!("{path}/{name}");
            for work in everything(path.as_bytes()) {
                assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
            }
            for work in everything_by_name(path.as_bytes()) {
                assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
            }
            for work in everything_else(path.as_bytes()) {
                assert_eq!(refused(site.work(work)), DENIED, "{work:?}");
            }
            assert_eq!(refused(site.work(send(path.as_bytes()))), DENIED, "{path}");
            assert_eq!(refused(site.write(&path, "x")), DENIED, "{path}");
            let received = site.work_with(receive(path.as_bytes()), &received_file());
            assert_eq!(refused(received), DENIED, "{path}");
        }
    }
    for path in ["home/passwd", "home/dangling", "home/deep"] {
        let writes = [
            site.write(path, "x").map(|_| ()),
            write_in_place(&mut site, path, WritePlace::Append),
            write_in_place(&mut site, path, WritePlace::At(0)),
        ];
        for written in writes {
            // What leads through a directory that is not there leads nowhere.
            let expected = match path {
                "home/deep" => NOT_FOUND,
                _ => DENIED,
            };
            assert_eq!(refused(written), expected, "{path}");
        }
    }
    assert_eq!(site.listing(), before);
    assert_eq!(fs::read(site.at("etc/file")).unwrap(), b"root's");
    assert_eq!(fs::read(site.at("home/own/file")).unwrap(), b"alice's");
    let now = fs::metadata(site.at("etc")).unwrap();
    assert_eq!((now.permissions().mode(), now.uid()), (mode, 0));
}

#[test]
fn where_the_root_is_everything_a_link_of_another_user_is_not_followed_either() {
    if !is_root() {
        return;
    }
    let mut site = site();
    link_of(&site, ALICE, "home/etc", site.at("etc"));
    link_of(&site, ALICE, "home/mine", site.at("home/own"));
    let everywhere = Path::new("/");
    for (path, expected) in [("home/etc/file", None), ("home/mine/file", Some("alice's"))] {
        let path = site.at(path);
        let read = Work::Read {
            path: path.as_os_str().as_bytes(),
            offset: 0,
            length: 100,
        };
        let read = site.work_in(everywhere, read, b"");
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
    let mut site = site();
    link_of(&site, ALICE, "home/etc", "../etc");
    // Else the user would own a file in a directory of root.
    let written = site.write_with("home/etc/new", "x", |write| {
        write.owner = Owner::User("1234");
    });
    assert_eq!(refused(written), DENIED);
    assert!(!site.at("etc/new").exists());
}

#[test]
fn a_users_links_to_what_is_the_users_are_followed() {
    if !is_root() {
        return;
    }
    let mut site = site();
    link_of(&site, ALICE, "home/current", "own");
    link_of(&site, ALICE, "home/latest", "own/file");
    link_of(&site, ALICE, "home/new", "own/new");
    link_of(&site, ALICE, "home/roundabout", "../shortcut/file");
    link_of(&site, 0, "shortcut", "home/current");
    for path in [
        "home/current/file",
        "home/latest",
        "home/roundabout",
        "shortcut/file",
        "shortcut/../current//./file",
    ] {
        assert_eq!(site.read(path).unwrap(), b"alice's", "{path}");
    }
    site.write("home/new", "written").unwrap();
    site.write("home/current/made/below", "written").unwrap();
    site.write("home/latest", "replaced").unwrap();
    write_in_place(&mut site, "home/latest", WritePlace::Append).unwrap();
    assert_eq!(fs::read(site.at("home/own/file")).unwrap(), b"replacedx");
    for path in ["new", "file", "made", "made/below"] {
        let made = fs::symlink_metadata(site.at("home/own").join(path)).unwrap();
        assert_eq!(made.uid(), ALICE, "{path}");
    }
    let still = fs::symlink_metadata(site.at("home/latest")).unwrap();
    assert!(still.is_symlink());
}

/// The kernel's own answer to what the agent does name by name.
#[test]
fn links_lead_where_the_kernel_says_they_do() {
    let mut site = Site::new();
    for (place, directory) in ["a", "b", "a/b", "a/b/c"].into_iter().enumerate() {
        fs::create_dir(site.at(directory)).unwrap();
        let mode = fs::Permissions::from_mode(0o700 + place as u32 + 1);
        fs::set_permissions(site.at(directory), mode).unwrap();
        fs::write(site.at(directory).join("f"), "x".repeat(place + 1)).unwrap();
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
        symlink(target, site.at(link)).unwrap();
    }
    let names = ["a", "b", "c", "f", "l", "loop", "..", ".", ""];
    let mut followed = 0;
    for first in names {
        for second in names {
            for third in names {
                let path = format!("x/{first}/{second}/{third}");
                let path = path.trim_start_matches(['x', '/']);
                for follow in [true, false] {
                    followed += usize::from(compare_with_kernel(&mut site, path, follow));
                }
            }
        }
    }
    assert!(followed > 100, "only {followed} paths led anywhere");
}

/// Whether the path leads somewhere.
fn compare_with_kernel(site: &mut Site, path: &str, follow: bool) -> bool {
    let root = rustix::fs::open(site.root(), OFlags::PATH, Mode::empty()).unwrap();
    let mut flags = OFlags::PATH;
    flags.set(OFlags::NOFOLLOW, !follow);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let asked = if path.is_empty() { "." } else { path };
    let ask = || openat2(&root, asked, flags, Mode::empty(), resolve);
    let mut kernel = ask();
    // So it asks for another try while anything on the machine is renamed.
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
    let stat = Work::Stat {
        path: path.as_bytes(),
        follow,
        digest: false,
    };
    let agent = site.entry(stat).map(|told| {
        let is_directory = told.kind == vmcell_wire::files::FileKind::Directory;
        (
            u32::from(told.mode),
            if is_directory { 0 } else { told.size },
        )
    });
    match (kernel, agent) {
        (Ok(kernel), Ok(agent)) => assert_eq!(agent, kernel, "{path} {follow}"),
        (Err(kernel), Err(agent)) => {
            // Leaving the root has words of its own, without a number.
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
    let mut site = Site::new();
    fs::write(site.at("0"), "the end").unwrap();
    for link in 1..=41 {
        symlink((link - 1).to_string(), site.at(link.to_string())).unwrap();
    }
    assert_eq!(site.read("40").unwrap(), b"the end");
    assert_eq!(refused(site.read("41")), INVALID);
    assert_eq!(refused(site.write("41", "x")), INVALID);
}

#[test]
fn links_of_the_kernel_that_jump_are_not_followed() {
    let mut site = Site::new();
    let stat = |path| Work::Stat {
        path,
        follow: true,
        digest: false,
    };
    let everywhere = Path::new("/");
    assert!(
        site.work_in(everywhere, stat(b"proc/self/status"), b"")
            .is_ok()
    );
    for path in [
        &b"proc/self/root/etc"[..],
        b"proc/self/cwd",
        b"proc/self/fd/0",
    ] {
        let found = site.work_in(everywhere, stat(path), b"");
        assert_eq!(refused(found), INVALID);
    }
}

#[test]
fn a_user_who_swaps_what_a_link_leads_to_wins_nothing() {
    if !is_root() {
        return;
    }
    let mut site = site();
    link_of(&site, ALICE, "home/one", "own");
    link_of(&site, ALICE, "home/two", "../etc");
    let (one, two) = (site.at("home/one"), site.at("home/two"));
    let swap = || renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).unwrap();
    let (mut done, mut denied) = (0, 0);
    with_concurrent(swap, || {
        // Both must be seen, however the two threads are scheduled.
        for round in 0..20_000 {
            match site.write("home/one/file", "x") {
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
    assert_eq!(fs::read(site.at("etc/file")).unwrap(), b"root's");
}

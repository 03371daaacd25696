//! Guests whose answers never end: the limits of collected results.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use vmcell_wire::{
    PackedStringsBuf,
    files::{FileEntry, FileKind, FileReply, Time, record},
    limits::MAX_PATH,
};

use super::*;
use crate::{
    Error, Processes, Vm,
    files::{FileFailureKind, Files, ManifestOptions, ReadOptions},
    service::{LogsRequest, Services},
};

/// A VM with a guest for [`answer_without_end`].
async fn vm() -> (Vm, Guest) {
    let (session, guest) = connect().await;
    (Vm::on_session(session), guest)
}

/// What the guest answers with.
enum Answers<'a> {
    /// The next page of a list, which is not the last one. The closure writes
    /// the entry with a number.
    Pages(&'a dyn Fn(StreamId, u32) -> Vec<u8>),
    /// Bytes; the closure makes some more of them.
    Bytes(&'a dyn Fn(u32) -> Vec<u8>),
}

/// Lets the guest answer until the host closes the link. Returns how many entries
/// or pieces it has sent.
async fn answer_without_end(mut guest: Guest, answers: Answers<'_>) -> u32 {
    let mut sent = 0;
    // How much more may be sent on the stream that was opened last.
    let mut open: Option<(StreamId, usize)> = None;
    let mut waiting = Vec::new();
    loop {
        if let (Some((stream, room)), Answers::Bytes(more)) = (&mut open, &answers) {
            if waiting.is_empty() {
                sent += 1;
                waiting = more(sent);
            }
            let count = waiting.len().min(*room).min(MAX_PAYLOAD as usize);
            if count > 0 {
                let bytes: Vec<u8> = waiting.drain(..count).collect();
                *room -= count;
                let frame = data(*stream, Channel::Stdout, &bytes);
                // The host has closed the link.
                if guest.link.write_all(&frame).await.is_err() {
                    return sent;
                }
                continue;
            }
        }
        match guest.recv().await {
            Some(FromHost::Open(id)) => match &answers {
                Answers::Pages(entry) => {
                    let mut page = Vec::new();
                    for _ in 0..MAX_LISTED {
                        sent += 1;
                        page.extend(entry(id, sent));
                    }
                    page.extend(close(id, &Outcome::EndOfList { more: true }));
                    if guest.link.write_all(&page).await.is_err() {
                        return sent;
                    }
                }
                Answers::Bytes(_) => open = Some((id, WINDOW as usize)),
            },
            Some(FromHost::ReadLog(id, ..)) => {
                guest.send(&attached(id, 0, 0, None)).await;
                open = Some((id, WINDOW as usize));
            }
            Some(FromHost::Credit(id, _, bytes)) => {
                if let Some((_, room)) = open.as_mut().filter(|(open, _)| *open == id) {
                    *room += bytes as usize;
                }
            }
            Some(FromHost::Cancel(id)) => {
                open = open.filter(|(open, _)| *open != id);
                waiting.clear();
                guest.send(&close(id, &Outcome::Done)).await;
            }
            Some(_) => {}
            None => return sent,
        }
    }
}

/// Asks, while the guest answers without end. Returns the error that ends it,
/// and how much was sent.
async fn ask<T: std::fmt::Debug>(
    answers: Answers<'_>,
    asking: impl AsyncFnOnce(&Vm) -> Result<T, Error>,
) -> (Error, u32) {
    let (vm, guest) = vm().await;
    let asking = async move { asking(&vm).await.unwrap_err() };
    tokio::join!(asking, answer_without_end(guest, answers))
}

#[track_caller]
fn assert_limit(error: &Error, expected: usize, counted: &str) {
    match error {
        Error::ResultLimit { limit, unit, .. } => {
            assert_eq!((*limit, *unit), (expected as u64, counted), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_list_of_processes_ends_at_its_limit() {
    let (error, sent) = ask(Answers::Pages(&listed), async |vm| {
        vm.processes().list().await
    })
    .await;
    assert_limit(&error, Processes::MAX_LISTED, "entries");
    assert!(sent as usize <= Processes::MAX_LISTED + MAX_LISTED);
}

#[tokio::test]
async fn what_processes_have_in_their_arguments_counts() {
    let mut words = PackedStringsBuf::new();
    while words.as_packed().byte_len() < 254 {
        assert!(words.push(b"x"));
    }
    let entry = |stream, process| {
        let event = listed_entry(process, words.as_packed());
        frames(|out| encode::event(out, stream, &Event::Listed(event)).unwrap())
    };
    let (error, sent) = ask(Answers::Pages(&entry), async |vm| {
        vm.processes().list().await
    })
    .await;
    assert_limit(&error, Processes::MAX_LISTED_BYTES, "bytes of memory");
    assert!((sent as usize) < Processes::MAX_LISTED / 2, "{sent}");
}

#[cfg(feature = "terminal")]
#[tokio::test]
async fn a_list_of_terminals_ends_at_its_limit() {
    let (error, _) = ask(Answers::Pages(&listed), async |vm| {
        vm.terminals().list().await
    })
    .await;
    assert_limit(&error, Processes::MAX_LISTED, "entries");
}

#[tokio::test]
async fn a_list_of_services_ends_at_its_limit() {
    let entry = |stream, service: u32| {
        let state = ServiceState {
            name: &format!("s{service:08}"),
            phase: Phase::Running,
            since_ms: 1,
            pid: None,
            restarts: 0,
            last_exit: None,
            log: BufferedRange { start: 0, end: 0 },
        };
        frames(|out| encode::event(out, stream, &Event::Service(state)).unwrap())
    };
    let (error, sent) = ask(Answers::Pages(&entry), async |vm| {
        vm.services().list().await
    })
    .await;
    assert_limit(&error, Services::MAX_LISTED, "entries");
    assert!(sent as usize <= Services::MAX_LISTED + MAX_LISTED);
}

/// How many entries a piece has: large pieces need fewer frames.
const BATCH: u32 = 100;

/// Links with the longest paths and the longest targets that there are.
fn long_links(piece: u32) -> Vec<u8> {
    // No name is longer than 255 bytes.
    let rest = format!("/{}", "n".repeat(254)).repeat(16);
    let links = (0..BATCH).map(|number| {
        let mut path = format!("{:08}{rest}", piece * BATCH + number).into_bytes();
        path.truncate(MAX_PATH);
        entry(&path, FileKind::Symlink, &[b't'; MAX_PATH])
    });
    links.collect::<Vec<_>>().concat()
}

fn entry(path: &[u8], kind: FileKind, target: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let entry = file_entry(path, kind, target);
    record::encode(&mut bytes, &FileReply::Entry(entry)).unwrap();
    bytes
}

fn file_entry<'a>(path: &'a [u8], kind: FileKind, target: &'a [u8]) -> FileEntry<'a> {
    FileEntry {
        path,
        kind,
        mode: 0o777,
        size: 1,
        allocated: 0,
        uid: 0,
        gid: 0,
        owner: "",
        group: "",
        modified: Time::default(),
        links: 1,
        inode: 1,
        target,
        digest: None,
    }
}

/// One test, because each case uses as much memory as it may.
#[tokio::test]
async fn lists_of_files_and_manifests_end_at_their_limits() {
    // Bytes in flight do not count.
    let max = |limit: usize| (limit + 8 * WINDOW as usize) / (2 * MAX_PATH * BATCH as usize);
    let (error, sent) = ask(Answers::Bytes(&long_links), async |vm| {
        vm.files().list("/").await
    })
    .await;
    assert_limit(&error, Files::MAX_LISTED_BYTES, "bytes of memory");
    assert!(sent as usize <= max(Files::MAX_LISTED_BYTES), "{sent}");

    let (error, sent) = ask(Answers::Bytes(&long_links), async |vm| {
        let options = ManifestOptions::new();
        vm.files().manifest("/", options.clone()).await
    })
    .await;
    assert_limit(&error, Files::MAX_MANIFEST_BYTES, "bytes of memory");
    assert!(sent as usize <= max(Files::MAX_MANIFEST_BYTES), "{sent}");
}

#[tokio::test]
async fn many_short_names_end_at_the_number_of_entries() {
    let entries = |piece: u32| {
        let entries = (0..1000).map(|number| {
            let path = format!("{}", piece * 1000 + number);
            entry(path.as_bytes(), FileKind::Directory, b"")
        });
        entries.collect::<Vec<_>>().concat()
    };
    let (error, _) = ask(Answers::Bytes(&entries), async |vm| {
        vm.files().glob("*").await
    })
    .await;
    assert_limit(&error, Files::MAX_LISTED, "entries");
}

#[tokio::test]
async fn a_file_ends_at_its_limit_and_a_part_at_its_length() {
    let zeros = |_| vec![0; 64 * 1024];
    let (error, _) = ask(Answers::Bytes(&zeros), async |vm| {
        let whole = ReadOptions::new();
        vm.files().read_with("/file", whole).await.map(|_| ())
    })
    .await;
    let Error::File(failure) = error else {
        panic!("{error:?}");
    };
    assert_eq!(failure.kind, FileFailureKind::Limit);

    // The guest sends more than was asked for.
    let (error, sent) = ask(Answers::Bytes(&zeros), async |vm| {
        let part = ReadOptions::new().range(0, 10);
        vm.files().read_with("/file", part).await
    })
    .await;
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert!(sent < 100, "{sent}");
}

#[tokio::test]
async fn a_text_that_is_longer_than_the_guest_said_is_not_kept() {
    let text = vec![b'x'; 64 * 1024];
    let digest = Sha256::digest(&text).into();
    let entry = FileEntry {
        digest: Some(digest),
        ..file_entry(b"file", FileKind::File, b"")
    };
    let mut entry_bytes = Vec::new();
    record::encode(&mut entry_bytes, &FileReply::Entry(entry)).unwrap();
    let (vm, mut guest) = vm().await;
    let answering = async {
        let Some(FromHost::Open(walk)) = guest.recv().await else {
            panic!("nothing is asked");
        };
        let answer = data(walk, Channel::Stdout, &entry_bytes);
        guest.send(&[answer, done(walk)].concat()).await;
        let Some(FromHost::Open(read)) = guest.recv().await else {
            panic!("no text is asked for");
        };
        let answer = data(read, Channel::Stdout, &text);
        guest.send(&[answer, done(read)].concat()).await;
        guest
    };
    let options = ManifestOptions::new().keep_texts(1 << 20);
    let files = vm.files();
    let (manifest, _guest) = tokio::join!(files.manifest("/", options.clone()), answering);
    let manifest = manifest.unwrap();
    assert_eq!(manifest.len(), 1);
    assert_eq!(manifest.text(&digest), None);
}

/// The end of work on files.
fn done(stream: StreamId) -> Vec<u8> {
    let mut bytes = frames(|out| encode::end(out, stream, Channel::Stdout));
    bytes.extend(close(stream, &Outcome::Done));
    bytes
}

#[tokio::test]
async fn a_log_ends_at_its_limit() {
    let line = |_| b"the same line again and again\n".repeat(1000);
    let (error, _) = ask(Answers::Bytes(&line), async |vm| {
        let name = "web".to_owned();
        LogsRequest::new(vm.clone(), name).all().bytes().await
    })
    .await;
    assert_limit(&error, LogsRequest::MAX_COLLECTED, "bytes");
}

#[tokio::test]
async fn a_push_does_not_wait_for_the_end_of_what_the_guest_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    // The guest names the one file that the host has, again and again.
    let again = entry(b"file", FileKind::Symlink, &[b't'; MAX_PATH]).repeat(BATCH as usize);
    let again = |_| again.clone();
    let from = folder.path().to_owned();
    // The second answer is nonsense, for it is no answer to a push.
    let (error, sent) = ask(Answers::Bytes(&again), async |vm| {
        vm.files().push(from, Path::new("/there")).run().await
    })
    .await;
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert!(sent < (256 << 10) / BATCH, "{sent}");
}

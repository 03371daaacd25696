//! Connections through the socket of a fake VMM.

use std::time::Instant;

use tempfile::TempDir;
use tokio::{io::AsyncBufReadExt, net::UnixListener};

use super::*;

/// A fake VMM that listens on a Unix socket.
struct FakeVmm {
    folder: TempDir,
    listener: UnixListener,
}

impl FakeVmm {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("vsock")).unwrap();
        Self { folder, listener }
    }

    fn address(&self) -> Address {
        Address::Hybrid {
            path: self.folder.path().join("vsock"),
            port: 1024,
        }
    }

    /// Accepts a connection that requests the port.
    async fn accept_request(&self) -> UnixStream {
        let (socket, _) = self.listener.accept().await.unwrap();
        let mut socket = tokio::io::BufReader::new(socket);
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        assert_eq!(line, "CONNECT 1024\n");
        assert_eq!(socket.buffer(), b"", "it did not wait for the answer");
        socket.into_inner()
    }

    /// Accepts a connection and returns a guest that has answered the hello.
    async fn accept_guest(&self) -> Guest {
        let mut socket = self.accept_request().await;
        socket.write_all(b"OK 1073741824\n").await.unwrap();
        let mut guest = Guest::new(socket);
        assert_eq!(guest.recv().await, Some(FromHost::Hello));
        guest.send(&hello(GUEST_WINDOW, BOOT_ID)).await;
        guest
    }

    async fn session(&self) -> (Session, Guest) {
        let (session, guest) = tokio::join!(
            async {
                let link = Link::dial(self.address()).await.unwrap();
                Session::connect(link, Some(BOOT_ID)).await.unwrap()
            },
            self.accept_guest()
        );
        (session, guest)
    }
}

/// Connects to a VMM that sends this reply, in pieces, and returns the result.
async fn reply_with(pieces: &[&[u8]]) -> Result<(), ConnectError> {
    let vmm = FakeVmm::new();
    let address = vmm.address();
    let connecting = tokio::spawn(async move { address.connect().await });
    let mut socket = vmm.accept_request().await;
    for piece in pieces {
        // The host may have closed the connection.
        let _ = socket.write_all(piece).await;
        tokio::task::yield_now().await;
    }
    let _ = socket.shutdown().await;
    connecting.await.unwrap().map(drop)
}

#[tokio::test]
async fn an_answer_is_understood_in_whatever_pieces_it_comes() {
    assert_eq!(reply_with(&[b"OK 1\n"]).await, Ok(()));
    assert_eq!(reply_with(&[b"O", b"K", b" ", b"7", b"\n"]).await, Ok(()));
    assert_eq!(reply_with(&[b"OK 4294967295\n"]).await, Ok(()));
}

#[tokio::test]
async fn a_link_in_the_place_of_the_socket_leads_nowhere() {
    let (vmm, elsewhere) = (FakeVmm::new(), FakeVmm::new());
    let path = vmm.folder.path().join("vsock");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(elsewhere.folder.path().join("vsock"), &path).unwrap();
    let refused = ConnectError::Io(std::io::ErrorKind::ConnectionRefused);
    let outcome = vmm.address().connect().await.map(drop);
    assert_eq!(outcome, Err(refused));
    let nobody = elsewhere.listener.into_std().unwrap().accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_guest_in_which_nobody_listens_has_refused() {
    assert_eq!(reply_with(&[]).await, Err(ConnectError::Refused));
}

#[tokio::test]
async fn an_answer_that_is_none_is_senseless() {
    for garbage in [
        &b"OK"[..],
        b"OK\n",
        b"OK \n",
        b"OK x\n",
        b"OK -1\n",
        b"OK 4294967296\n",
        b"ok 1\n",
        b"NO\n",
        b"\n",
        b"\xff\xfe\xfd\n",
        b"OK 1073741824 and more\n",
        &[b'0'; 100_000],
    ] {
        let answer = reply_with(&[garbage]).await;
        assert_eq!(answer, Err(ConnectError::BadReply), "{:?}", &garbage[..2]);
    }
}

/// This takes 5 seconds, the timeout for a connection.
#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for_without_end() {
    let vmm = FakeVmm::new();
    let address = vmm.address();
    let connecting = tokio::spawn(async move { address.connect().await.map(drop) });
    let mut socket = vmm.accept_request().await;
    socket.write_all(b"OK 1").await.unwrap();
    assert_eq!(connecting.await.unwrap(), Err(ConnectError::TimedOut));
}

#[tokio::test]
async fn a_vmm_that_is_gone_takes_no_connections() {
    let vmm = FakeVmm::new();
    let address = vmm.address();
    drop(vmm.listener);
    let refused = ConnectError::Io(io::ErrorKind::ConnectionRefused);
    assert_eq!(address.connect().await.map(drop), Err(refused));
    drop(vmm.folder);
    let missing = ConnectError::Io(io::ErrorKind::NotFound);
    assert_eq!(address.connect().await.map(drop), Err(missing));
}

#[test]
fn a_kernel_tells_a_guest_that_refuses_from_one_that_does_not_answer() {
    let error = |kind: io::ErrorKind| ConnectError::from(io::Error::from(kind));
    assert_eq!(error(io::ErrorKind::ConnectionReset), ConnectError::Refused);
    assert_eq!(error(io::ErrorKind::TimedOut), ConnectError::TimedOut);
}

#[tokio::test]
async fn what_the_guest_says_right_behind_the_answer_is_not_lost() {
    let vmm = FakeVmm::new();
    let address = vmm.address();
    let connecting = tokio::spawn(async move {
        let link = Link::dial(address).await.unwrap();
        Session::connect(link, Some(BOOT_ID)).await.map(drop)
    });
    let mut socket = vmm.accept_request().await;
    let answer = [&b"OK 5\n"[..], &hello(GUEST_WINDOW, BOOT_ID)].concat();
    socket.write_all(&answer).await.unwrap();
    assert_eq!(connecting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_new_connection_is_made_when_the_old_one_has_ended_on_both_sides() {
    let vmm = FakeVmm::new();
    let (session, mut guest) = vmm.session().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    guest.send(&data(id, Channel::Stdout, b"one ")).await;
    settle(&session, &mut guest).await;
    session.drop_link();
    // The host has closed its side, and still reads late bytes.
    while guest.recv().await.is_some() {}
    guest.send(&data(id, Channel::Stdout, b"late")).await;
    drop(guest);
    let mut guest = vmm.accept_guest().await;
    assert_eq!(guest.recv_resume(id).await.stdout, at(4, WINDOW - 4));
    guest.send(&attached(id, 4, 0, None)).await;
    guest.send(&data(id, Channel::Stdout, b"two")).await;
    assert_eq!(finish(&mut stream, &mut guest, 7).await, b"one two");
}

#[tokio::test]
async fn a_guest_that_hangs_up_is_connected_to_again_but_not_all_the_time() {
    let vmm = FakeVmm::new();
    let began = Instant::now();
    let (session, mut guest) = vmm.session().await;
    let mut stream = open_started(&session, &mut guest).await;
    let id = stream.id;
    for _ in 0..4 {
        drop(guest);
        guest = vmm.accept_guest().await;
        guest.recv_resume(id).await;
        guest.send(&attached(id, 0, 0, None)).await;
    }
    assert!(began.elapsed() >= Duration::from_secs(1));
    guest.send(&data(id, Channel::Stdout, b"all")).await;
    assert_eq!(finish(&mut stream, &mut guest, 3).await, b"all");
}

#[tokio::test]
async fn a_guest_that_cannot_be_connected_to_again_is_lost() {
    let vmm = FakeVmm::new();
    let (session, mut guest) = vmm.session().await;
    let mut stream = open_started(&session, &mut guest).await;
    drop(guest);
    drop(vmm.accept_request().await);
    let refused = LinkError::Connect(ConnectError::Refused);
    assert_eq!(stream.next().await.unwrap_err(), refused);
    assert_eq!(session.open(&exec()).unwrap_err(), OpenError::Link(refused));
}

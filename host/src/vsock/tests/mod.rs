//! Not every machine has vsock in its kernel, but every guest with a vsock
//! device has. So these tests copy their own program into a VM and run a part
//! of it there:
//!
//! ```text
//!  this test ── <vsock>_<port> ─────── connect(2, port)      guest.rs,
//!            ── <vsock>: CONNECT n ─── VsockListener::bind   in the VM
//! ```
//!
//! The Unix sockets are those of `vhost-device-vsock`, as for
//! [`AgentTransport::Hybrid`](crate::backend::AgentTransport).

mod guest;
mod program;

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    time::timeout,
};

use self::program::Program;
use crate::{
    Command, Error, LinkKind, Vm,
    run_folder::{RunFolder, VMM},
};

/// The port on which the guest's part reports what it does.
const CONTROL_PORT: u32 = 2000;

/// The port on which it sends and receives bytes.
const DATA_PORT: u32 = 2001;

/// A port on which nothing listens.
const UNUSED_PORT: u32 = 2002;

/// How many bytes go in each direction.
const SIZE: usize = 4 * 1024 * 1024;

/// How long each part may take, in an emulated machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A pattern in which a missing or misplaced byte is noticed.
fn bytes(seed: u32) -> Vec<u8> {
    let byte = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8;
    (seed..).map(byte).take(SIZE).collect()
}

const FROM_GUEST: u32 = 1;
const FROM_HOST: u32 = 2;

#[tokio::test]
async fn connections_to_the_host_and_from_it_work_in_a_real_kernel() {
    let builder = Vm::builder()
        .image(vmcell_rootfs::recipe::base().cached().unwrap().path)
        .memory_mib(128)
        .link(LinkKind::HybridVsock);
    let vm = match builder.start().await {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("skipped: {error}");
            return;
        }
        started => started.unwrap(),
    };
    let host = Host::of(&vm);
    let program = Program::this().unwrap();
    let files = vm.files().at("/workspace");
    files.push(program.folder(), "program").run().await.unwrap();
    let command = Command::from_argv(program.argv("/workspace/program", guest::TEST_NAME))
        .env(guest::ROLE_VARIABLE, "guest")
        .timeout(TEST_TIMEOUT);
    let serving = tokio::spawn(host.serve());
    let guest = vm.exec_stream(command).unwrap();
    let output = guest.wait_with_output().await.unwrap();
    assert!(output.success(), "{output:?}");
    assert!(output.stdout_text().contains("1 passed"), "{output:?}");
    timeout(TEST_TIMEOUT, serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

/// The other side of what runs in the guest.
struct Host {
    /// The socket for connections to the guest.
    vsock: PathBuf,
    control: UnixListener,
    data: UnixListener,
}

impl Host {
    fn of(vm: &Vm) -> Self {
        let vsock = RunFolder::base().join(vm.id()).join(VMM).join("vsock");
        let listen = |port| {
            let path = format!("{}_{port}", vsock.display());
            let listener = UnixListener::bind(&path).unwrap();
            // The VMM has another user if this test is root.
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            listener
        };
        let (control, data) = (listen(CONTROL_PORT), listen(DATA_PORT));
        Self {
            vsock,
            control,
            data,
        }
    }

    async fn serve(self) -> io::Result<()> {
        let (mut control, _) = self.control.accept().await?;
        let (data, _) = self.data.accept().await?;
        exchange(data, &mut control).await?;

        // The guest waits for the host, and closes the connection at once.
        let port = control.read_u32().await?;
        let connection = self.connect(port).await?;
        assert_eq!(rest_of(connection).await?, b"");
        assert_eq!(control.read_u8().await?, guest::CONNECTED);

        // It waits for another guest, however often the host tries.
        let port = control.read_u32().await?;
        for _ in 0..3 {
            let connection = self.connect(port).await?;
            assert_eq!(rest_of(connection).await?, b"");
        }
        control.write_u8(0).await?;
        assert_eq!(control.read_u8().await?, guest::STILL_WAITING);
        Ok(())
    }

    /// Connects to a port on which the guest listens.
    async fn connect(&self, port: u32) -> io::Result<UnixStream> {
        let mut socket = UnixStream::connect(&self.vsock).await?;
        let request = format!("CONNECT {port}\n");
        socket.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while answer.last() != Some(&b'\n') {
            answer.push(socket.read_u8().await?);
        }
        assert!(answer.starts_with(b"OK "), "{answer:?}");
        Ok(socket)
    }
}

/// Sends and receives at once, and then sends the final bytes. The guest reports
/// on the control connection that it has closed its side: the device closes both
/// directions or none.
async fn exchange(mut data: UnixStream, control: &mut UnixStream) -> io::Result<()> {
    let (mut reader, mut writer) = data.split();
    let mut received = vec![0; SIZE];
    let sent = bytes(FROM_HOST);
    tokio::try_join!(reader.read_exact(&mut received), writer.write_all(&sent))?;
    assert!(received == bytes(FROM_GUEST));
    assert_eq!(control.read_u8().await?, guest::WRITE_CLOSED);
    data.write_all(guest::FINAL_BYTES).await
}

async fn rest_of(mut connection: UnixStream) -> io::Result<Vec<u8>> {
    let mut rest = Vec::new();
    match connection.read_to_end(&mut rest).await {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
        _ => Ok(rest),
    }
}

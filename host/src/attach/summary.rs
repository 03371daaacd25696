use std::{io, time::SystemTime};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use crate::acceleration::{Acceleration, AccelerationChoice};

/// What the owner of a VM sends to every client first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VmSummary {
    /// The version of this format. A later one only has more fields at the end, which
    /// an earlier program does not read. A program that knows more fields gives those of
    /// an earlier one their defaults.
    generation: u16,
    pub(crate) image: String,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) backend: String,
    /// `None` if no VM isolates the guest.
    emulated: Option<bool>,
    /// Milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// What every user of the VM must know.
    pub(crate) warnings: Vec<String>,
    /// Whether the VM's disk is kept when it ends.
    pub(crate) keeps_disk: bool,
    /// Whether the VM is paused.
    pub(crate) is_paused: bool,
}

const GENERATION: u16 = 3;

/// The size of the largest valid summary.
const MAX_SIZE: u16 = 16 * 1024;

impl VmSummary {
    pub(crate) fn new(
        image: String,
        vcpus: u32,
        memory_mib: u32,
        backend: &str,
        acceleration: Option<Acceleration>,
        warnings: &[String],
        keeps_disk: bool,
    ) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            generation: GENERATION,
            image,
            vcpus,
            memory_mib,
            backend: backend.to_owned(),
            emulated: acceleration.map(|acceleration| acceleration == Acceleration::Tcg),
            started_ms: now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0)),
            warnings: warnings.to_vec(),
            keeps_disk,
            is_paused: false,
        }
    }

    pub(crate) fn acceleration(&self) -> Option<AccelerationChoice> {
        Some(AccelerationChoice {
            acceleration: match self.emulated? {
                true => Acceleration::Tcg,
                false => Acceleration::Kvm,
            },
            reason: "chosen by the program that owns the VM",
        })
    }

    pub(super) async fn send(&self, socket: &mut UnixStream) -> io::Result<()> {
        let bytes = postcard::to_allocvec(self).map_err(io::Error::other)?;
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        socket.write_all(&length.to_le_bytes()).await?;
        socket.write_all(&bytes).await
    }

    /// Receives a summary.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it is malformed or from
    /// an earlier version of vmcell that is not supported any more.
    pub(super) async fn receive(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let length = socket.read_u16_le().await?;
        if length > MAX_SIZE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length.into()];
        socket.read_exact(&mut bytes).await?;
        let summary: Option<Self> = postcard::from_bytes(&bytes).ok();
        summary
            .filter(|summary| summary.generation >= GENERATION)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

//! The disk of a running QEMU, as a chain of files.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd as _, AsRawFd as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{arguments::layer_node, qmp::Qmp};
use crate::{
    backend::{LayerQuota, Machine},
    disk::image::{Image, OpenOptions, create_child},
    error::Error,
    metrics::DiskFile,
    overlay::Overlay,
    vmm::VmmKiller,
};

/// The files of a disk, open for reading.
#[derive(Debug)]
pub(super) struct DiskFiles {
    /// The qcow2 layers, the topmost first.
    pub(super) layers: Vec<File>,
    /// The raw image below them.
    pub(super) image: Option<File>,
    pub(super) size: u64,
    /// The topmost layer, whose size others want to know.
    pub(super) top: DiskFile,
    /// How many bytes may be written to the layers.
    pub(super) quota: LayerQuota,
    /// The QEMU that writes to them, when it runs.
    pub(super) vmm: Option<VmmKiller>,
    /// QEMU's name of the first topmost layer.
    first_node: &'static str,
    /// How often the topmost layer was replaced.
    switches: u64,
}

impl DiskFiles {
    /// Opens the files of a disk once more. Not even a copy of the descriptors that QEMU
    /// inherits stays here: the lock of a disk that is kept must end with QEMU.
    pub(super) fn open(machine: &Machine, disk: &Overlay) -> io::Result<Self> {
        let top = DiskFile::new(&disk.layer);
        let mut files = Self {
            layers: vec![reopen(&disk.layer)?],
            image: None,
            size: disk.size,
            quota: LayerQuota::of_layers(&machine.quotas, top.clone(), disk.size),
            vmm: None,
            first_node: layer_node(machine),
            top,
            switches: 0,
        };
        for backing in &disk.backing {
            let file = reopen(&backing.file)?;
            match backing.format {
                "raw" => files.image = Some(file),
                _ => files.layers.push(file),
            }
        }
        Ok(files)
    }

    /// Returns the path of the image, if there is one.
    pub(super) fn image_path(&self) -> io::Result<Option<PathBuf>> {
        self.image.as_ref().map(path_of).transpose()
    }

    /// Makes QEMU write to a new layer at `path`. If that fails, there is no such file.
    pub(super) fn switch(&mut self, qmp: &mut Qmp, path: &Path) -> Result<(), Error> {
        if let Some(vmm) = &self.vmm {
            self.quota.check_switch(vmm)?;
        }
        let layer = self.create_layer(path)?;
        let switched = self.switch_to(qmp, &layer);
        if switched.is_err() {
            // It was created here.
            let _ = fs::remove_file(path);
        }
        switched
    }

    /// Creates a layer above the topmost one, and returns it locked for writing.
    fn create_layer(&self, path: &Path) -> Result<File, Error> {
        let opened = "open the disk of the VM";
        let top = self.layers.first().map(path_of);
        let top = top
            .transpose()
            .map_err(Error::host(opened))?
            .unwrap_or_default();
        // QEMU writes to the disk. Only its header is read, which stays as it is.
        let mut options = OpenOptions::new().allow_in_use(true);
        for file in self.layers.iter().chain(&self.image) {
            let file = path_of(file).map_err(Error::host(opened))?;
            options = options.allow_backing(file.parent().unwrap_or(Path::new("/")));
        }
        create_child(top, path, options.clone())?;
        let layer = Image::open(path, options).and_then(Image::into_writable);
        let layer = layer.inspect_err(|_| drop(fs::remove_file(path)));
        Ok(layer?.top)
    }

    fn switch_to(&mut self, qmp: &mut Qmp, layer: &File) -> Result<(), Error> {
        let failed = |reason| Error::Control {
            doing: "switch the disk of the VM",
            reason,
        };
        let reopened = reopen(layer).map_err(Error::host("open the layer"))?;
        let (old, new) = (self.node(self.switches), self.node(self.switches + 1));
        let added = qmp.execute_with("add-fd", json!({}), layer.as_fd());
        let set = added
            .map_err(failed)?
            .get("fdset-id")
            .and_then(Value::as_u64)
            .ok_or_else(|| failed("QEMU does not number the layer".to_owned()))?;
        let switched = add_nodes(qmp, &new, set).and_then(|()| {
            let nodes = json!({ "node": old, "overlay": new });
            qmp.execute("blockdev-snapshot", nodes)
                .map(drop)
                .inspect_err(|_| remove_nodes(qmp, &new))
        });
        if switched.is_err() {
            // QEMU would keep the descriptor, and the lock with it.
            let _ = qmp.execute("remove-fd", json!({ "fdset-id": set }));
        }
        switched.map_err(failed)?;
        let old_length = self.top.length().unwrap_or(0);
        self.top.replace(&reopened);
        if let Some(vmm) = &self.vmm {
            self.quota.switch(old_length, vmm);
        }
        self.layers.insert(0, reopened);
        self.switches += 1;
        Ok(())
    }

    /// Returns QEMU's name of the topmost layer after so many switches.
    fn node(&self, switches: u64) -> String {
        match switches {
            0 => self.first_node.to_owned(),
            switches => format!("{}{switches}", self.first_node),
        }
    }
}

/// Adds a layer on a set of descriptors that stands on nothing yet.
fn add_nodes(qmp: &mut Qmp, node: &str, set: u64) -> Result<(), String> {
    let file = format!("{node}-file");
    let on_file = json!({
        "driver": "file", "node-name": file, "filename": format!("/dev/fdset/{set}"),
        "discard": "unmap",
    });
    qmp.execute("blockdev-add", on_file)?;
    let layer = json!({
        "driver": "qcow2", "node-name": node, "file": file, "backing": null, "discard": "unmap",
    });
    let added = qmp.execute("blockdev-add", layer);
    added.map(drop).inspect_err(|_| remove_node(qmp, &file))
}

fn remove_nodes(qmp: &mut Qmp, node: &str) {
    remove_node(qmp, node);
    remove_node(qmp, &format!("{node}-file"));
}

fn remove_node(qmp: &mut Qmp, node: &str) {
    // Fails only if QEMU does not reply.
    let _ = qmp.execute("blockdev-del", json!({ "node-name": node }));
}

/// Opens a file once more, for reading.
fn reopen(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn path_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

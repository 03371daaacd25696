use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{
    id::{check_id, check_label, check_name, new_id},
    record::Record,
    seed::Seed,
    specification::Specification,
    timestamp::Timestamp,
};
use crate::{error::Error, network::NetworkPolicy, quotas::Quotas, secret::Secret};

/// A workspace to [create](super::Workspaces::create).
///
/// ```no_run
/// # async fn example() -> Result<(), vmcell::Error> {
/// use vmcell::workspace::{NewWorkspace, Workspaces};
///
/// let new = NewWorkspace::new("base.ext4")
///     .name("build")
///     .label("team", "compilers")
///     .seed("my-project");
/// let workspace = Workspaces::open()?.create(new).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NewWorkspace {
    id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) specification: Specification,
    pub(super) lifetime: Option<Duration>,
    pub(super) is_warm: bool,
    pub(super) secrets: Vec<Secret>,
    seed: Option<PathBuf>,
}

impl NewWorkspace {
    /// A workspace whose VM boots from an image, with one processor and 1024 MiB of
    /// memory, and without a network.
    pub fn new(image: impl Into<PathBuf>) -> Self {
        let image = image.into();
        let environment = image.file_stem().unwrap_or_default();
        Self {
            id: None,
            name: None,
            labels: BTreeMap::new(),
            specification: Specification {
                environment: environment.to_string_lossy().into_owned(),
                image,
                vcpus: 1,
                memory_mib: 1024,
                disk_mib: None,
                user: None,
                variables: BTreeMap::new(),
                network: NetworkPolicy::off(),
                quotas: Quotas::new(),
                idle_seconds: None,
            },
            lifetime: None,
            is_warm: false,
            secrets: Vec::new(),
            seed: None,
        }
    }

    /// Sets what the image is called in lists; the name of its file by default.
    pub fn environment(mut self, name: impl Into<String>) -> Self {
        self.specification.environment = name.into();
        self
    }

    /// Sets its id, which never changes: 1 to 48 lower-case letters, digits and hyphens. No
    /// other workspace may have it as its id or its name. By default it is made here:
    /// `ws-` and twelve random letters.
    ///
    /// It is the id of its VM, too, so that it runs only while no other VM of this user has
    /// the same id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets a name by which the workspace is found. No two workspaces of a user have the
    /// same one, and none has the id of another one as its name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a label. Labels are for those who look for a workspace, and have no effect.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Sets the number of virtual processors.
    pub fn vcpus(mut self, count: u32) -> Self {
        self.specification.vcpus = count;
        self
    }

    /// Sets the memory in MiB.
    pub fn memory_mib(mut self, mib: u32) -> Self {
        self.specification.memory_mib = mib;
        self
    }

    /// Sets the size of the disk in MiB; that of the image by default, which is also the
    /// least. What is not written takes no space on this machine.
    pub fn disk_mib(mut self, mib: u32) -> Self {
        self.specification.disk_mib = Some(mib);
        self
    }

    /// Sets the user that commands run as, unless they have another one; root by default.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.specification.user = Some(user.into());
        self
    }

    /// Sets an environment variable of all commands, unless they have their own.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let variables = &mut self.specification.variables;
        variables.insert(name.into(), value.into());
        self
    }

    /// Sets what the programs of the workspace reach, and whether ports can be published:
    /// nothing by default.
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.specification.network = policy;
        self
    }

    /// Sets what its VM may use of this machine, each time that it is started: see
    /// [`VmBuilder::quotas`](crate::VmBuilder::quotas). A fork has those of its source, unless
    /// others are set for it.
    pub fn quotas(mut self, quotas: Quotas) -> Self {
        self.specification.quotas = quotas;
        self
    }

    /// Pauses it by itself when nobody has used it for so long: no request, nothing typed
    /// on a terminal, no traffic on a port. Zero is never, as by default. Whole seconds
    /// count.
    pub fn pause_when_idle(mut self, time: Duration) -> Self {
        self.specification.idle_seconds = Some(time.as_secs()).filter(|seconds| *seconds > 0);
        self
    }

    /// Deletes it by itself after so long, running or not. Zero is never, as by default.
    pub fn lifetime(mut self, time: Duration) -> Self {
        self.lifetime = Some(time).filter(|time| !time.is_zero());
        self
    }

    /// Whether to start it from a [template](crate::template) of the image, in a fraction
    /// of the time of a boot. The first one makes the template. Where that is not possible,
    /// it boots. Later starts boot from its disk.
    pub fn warm(mut self, warm: bool) -> Self {
        self.is_warm = warm;
        self
    }

    /// Fills `/workspace` with the contents of a folder, or of a `.tar`, `.tar.gz`, `.tgz`
    /// or `.tar.zst` archive, before the workspace is there.
    pub fn seed(mut self, path: impl Into<PathBuf>) -> Self {
        self.seed = Some(path.into());
        self
    }

    /// [Keeps](super::Workspace::keep_secret) a secret.
    pub fn secret(mut self, secret: &Secret) -> Self {
        self.secrets.push(secret.clone());
        self
    }

    /// A workspace with the settings of another one, but for its id and its name.
    pub(super) fn like(record: &Record) -> Self {
        Self {
            id: None,
            name: None,
            labels: record.labels.clone(),
            specification: record.specification.clone(),
            lifetime: None,
            is_warm: false,
            secrets: Vec::new(),
            seed: None,
        }
    }

    /// Returns the record of the workspace. `prefix` is how its id begins if none was set.
    pub(super) fn into_record(self, prefix: &str) -> Result<Record, Error> {
        let id = match self.id {
            Some(id) => id,
            None => new_id(prefix)?,
        };
        check_id(&id)?;
        let mut record = Record::new(id, self.specification);
        record.name = self.name;
        record.labels = self.labels;
        let expires = self
            .lifetime
            .and_then(|time| SystemTime::now().checked_add(time));
        record.expires = expires.map(Timestamp::of);
        Ok(record)
    }

    /// Checks that it can have the disk of another one.
    pub(super) fn check_fork(&mut self, source: &Record) -> Result<(), Error> {
        self.specification.image = source.specification.image.clone();
        self.check_names()?;
        match self.seed {
            Some(_) => Err(Error::Invalid(
                "a fork has the files of its snapshot, and cannot be seeded".to_owned(),
            )),
            None => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), Error> {
        if let Some(name) = &self.name {
            check_name("name", name)?;
        }
        let mut labels = self.labels.iter();
        labels.try_for_each(|(key, value)| check_label(key, value))
    }

    /// Checks what can be checked before anything is created.
    pub(super) fn check(&mut self) -> Result<Option<Seed>, Error> {
        self.check_names()?;
        self.specification.quotas.validate()?;
        let image = &mut self.specification.image;
        *image = std::fs::canonicalize(&image).map_err(|error| Error::BadFile {
            what: "image",
            path: image.clone(),
            reason: error.to_string(),
        })?;
        self.seed.take().map(Seed::check).transpose()
    }
}

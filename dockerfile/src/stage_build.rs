use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell::Vm;
use vmcell_rootfs::{Digest, Fingerprint};

use crate::{
    BuildError, BuildEvent, Plan,
    copy::Selection,
    instruction::{
        CopyFrom, CopyInstruction, CopySource, Instruction, RunInstruction, Script, Step,
    },
    layers::Layers,
    machine::{Copy, Machine, Run, Work},
    plan::{BuiltStage, Disks, image_key},
    settings::Settings,
    stage::Origin,
    syntax::Quotes,
};

/// The disk of a stage, as far as it was built.
#[derive(Clone, Debug)]
pub(crate) struct StageDisk {
    /// The digest of all that it was made of.
    pub(crate) key: Digest,
    /// An image, or the layer of the last step.
    pub(crate) path: PathBuf,
    /// The image below all layers.
    pub(crate) base: PathBuf,
    /// The steps whose layers it consists of.
    pub(crate) steps: Vec<Digest>,
}

impl StageDisk {
    pub(crate) fn of_image(path: &Path) -> Result<Self, BuildError> {
        let path = path.canonicalize().map_err(BuildError::read(path))?;
        Ok(Self {
            key: image_key(&path).map_err(BuildError::read(&path))?,
            base: path.clone(),
            path,
            steps: Vec::new(),
        })
    }
}

/// A stage that is being built.
pub(crate) struct StageBuild<'a> {
    plan: &'a Plan,
    layers: &'a Layers,
    disks: &'a Disks,
    number: usize,
    disk: StageDisk,
    settings: Settings,
    /// Working directories that the next step makes.
    directories: Vec<String>,
}

/// A step whose inputs are known.
pub(crate) struct PreparedWork {
    work: Work,
    key: Digest,
}

/// Directories that a VM has of its own, in which nothing is kept.
const NOT_ON_DISK: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

impl<'a> StageBuild<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        layers: &'a Layers,
        disks: &'a Disks,
        number: usize,
        built: &BTreeMap<usize, BuiltStage>,
    ) -> Result<Self, BuildError> {
        let origin = plan.bases.get(number).unwrap_or(&Origin::Scratch);
        let (mut disk, settings) = match origin {
            Origin::Stage(stage) => {
                let stage = built.get(stage).ok_or_else(|| BuildError::NoStage {
                    name: stage.to_string(),
                })?;
                let mut settings = stage.settings.clone();
                settings.inherit();
                (stage.disk.clone(), settings)
            }
            Origin::Image(_) | Origin::Scratch => {
                let name = match origin {
                    Origin::Image(name) => Some(name.as_str()),
                    _ => None,
                };
                let found = disks.get(name).cloned();
                let (disk, defaults) = found.ok_or_else(|| BuildError::NoImage {
                    name: name.unwrap_or_default().to_owned(),
                })?;
                (disk, Settings::new(defaults, plan.stages.escape))
            }
        };
        if plan.options.no_cache {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let mut inputs = Fingerprint::new("vmcell fresh build");
            inputs.field("disk", disk.key.0);
            inputs.field("time", now.unwrap_or_default().as_nanos().to_le_bytes());
            disk.key = inputs.digest();
        }
        Ok(Self {
            plan,
            layers,
            disks,
            number,
            disk,
            settings,
            directories: Vec::new(),
        })
    }

    /// Returns what a step changes on the disk, if it does.
    pub(crate) fn prepare(
        &mut self,
        step: &Step,
        built: &BTreeMap<usize, BuiltStage>,
    ) -> Result<Option<PreparedWork>, BuildError> {
        let wrong = |problem| BuildError::at(step.line, problem);
        let mut inputs = self.inputs();
        let work = match &step.instruction {
            Instruction::Run(run) => self.run(run, &step.text, &mut inputs),
            Instruction::Copy(copy) => {
                let copy = self.copy(copy, built, &mut inputs).map_err(wrong)?;
                Work::Copy(Box::new(copy))
            }
            other => {
                self.settings
                    .apply(other, &self.plan.outer)
                    .map_err(wrong)?;
                if matches!(other, Instruction::WorkDirectory(_)) {
                    self.directories.push(self.settings.directory().to_owned());
                }
                return Ok(None);
            }
        };
        let key = inputs.digest();
        Ok(Some(PreparedWork { work, key }))
    }

    /// Returns the layer of a step, if it was done before.
    pub(crate) fn find(&self, prepared: &PreparedWork) -> Option<PathBuf> {
        self.layers.find(prepared.key, &self.disk.base)
    }

    /// Does a step, unless its layer was found.
    pub(crate) async fn finish(
        &mut self,
        prepared: PreparedWork,
        found: Option<PathBuf>,
        line: usize,
        events: &mut impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<(), BuildError> {
        let path = match found {
            Some(path) => path,
            None => {
                self.perform(prepared.work, prepared.key, line, events)
                    .await?
            }
        };
        self.directories.clear();
        self.disk.key = prepared.key;
        self.disk.path = path;
        self.disk.steps.push(prepared.key);
        Ok(())
    }

    /// Returns the stage. Working directories that no step has made are made.
    pub(crate) async fn into_built(
        mut self,
        events: &mut impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<BuiltStage, BuildError> {
        if !self.directories.is_empty() {
            let prepared = PreparedWork {
                work: Work::Nothing,
                key: self.inputs().digest(),
            };
            let found = self.find(&prepared);
            let stage = self.plan.stages.list.get(self.number);
            let line = stage.and_then(|stage| stage.steps.last());
            let line = line.map_or(0, |step| step.line);
            self.finish(prepared, found, line, events).await?;
        }
        Ok(BuiltStage {
            disk: self.disk,
            settings: self.settings,
        })
    }

    /// Begins the digest of a step.
    fn inputs(&self) -> Fingerprint {
        let mut inputs = Fingerprint::new("vmcell build step");
        inputs.field("disk", self.disk.key.0);
        inputs.field("disk MiB", self.plan.options.disk_mib.to_le_bytes());
        for directory in &self.directories {
            inputs.field("directory", directory);
        }
        inputs
    }

    fn run(&self, run: &RunInstruction, text: &str, inputs: &mut Fingerprint) -> Work {
        match &run.script {
            Script::Command(argv) => argv.iter().for_each(|word| {
                inputs.field("argument", word);
            }),
            Script::File(script) => {
                inputs.field("script", script);
            }
        }
        let variables = self.settings.variables();
        for (name, value) in &variables {
            inputs.field("variable", name).field("value", value);
        }
        let user = self.settings.defaults.user.clone();
        inputs.field("user", user.as_deref().unwrap_or_default());
        inputs.field("in", self.settings.directory());
        inputs.field("offline", [u8::from(run.is_offline)]);
        Work::Run(Run {
            script: run.script.clone(),
            variables,
            user,
            directory: self.settings.directory().to_owned(),
            is_offline: run.is_offline,
            text: text.to_owned(),
        })
    }

    fn copy(
        &self,
        copy: &CopyInstruction,
        built: &BTreeMap<usize, BuiltStage>,
        inputs: &mut Fingerprint,
    ) -> Result<Copy, String> {
        let disk = match &copy.from {
            CopyFrom::Context => None,
            CopyFrom::Image(name) => {
                let from = self.copied_from(name, built)?;
                inputs.field("from", from.key.0);
                let disk = self.layers.disk(&from.path, &from.base);
                Some(disk.map_err(|error| error.to_string())?)
            }
        };
        let mut selection = Selection::default();
        for source in &copy.sources {
            match (source, &disk) {
                (CopySource::Document(document), _) => {
                    let text = match document.expands {
                        true => self.settings.expand_with(&document.text(), Quotes::Keep)?,
                        false => document.text(),
                    };
                    selection.add_text(&document.name, text);
                }
                (CopySource::Path(path), None) => {
                    let path = self.settings.expand(path)?;
                    selection.add_from_context(&self.plan.context, &path, copy.unpacks)?;
                }
                (CopySource::Path(path), Some(disk)) => {
                    selection.add_from_disk(disk, &self.settings.expand(path)?)?;
                }
            }
        }
        selection.fingerprint(inputs)?;
        let given = self.settings.expand(&copy.destination)?;
        let destination = self.settings.absolute(&given);
        let is_lost = |top: &&&str| Path::new(&destination).starts_with(top);
        if let Some(top) = NOT_ON_DISK.iter().find(is_lost) {
            return Err(format!("nothing can be kept in {top}: each VM has its own"));
        }
        let into_directory = given.ends_with('/') || matches!(given.as_str(), "." | "..");
        if copy.sources.len() > 1 && !into_directory {
            return Err(format!(
                "several sources need a directory: write {given:?} with a slash at its end"
            ));
        }
        let owner = copy
            .owner
            .as_deref()
            .map(|owner| self.settings.expand(owner));
        let owner = owner.transpose()?;
        inputs.field("to", &destination);
        inputs.field("into", [u8::from(into_directory)]);
        inputs.field("owner", owner.as_deref().unwrap_or_default());
        inputs.field("mode", copy.mode.map_or([0xff; 4], u32::to_le_bytes));
        inputs.field("unpacks", [u8::from(copy.unpacks)]);
        Ok(Copy {
            selection,
            disk,
            destination,
            into_directory,
            owner,
            mode: copy.mode,
        })
    }

    fn copied_from<'b>(
        &'b self,
        name: &str,
        built: &'b BTreeMap<usize, BuiltStage>,
    ) -> Result<&'b StageDisk, String> {
        let found = match self.plan.stages.copied_from(name, self.number)? {
            Origin::Stage(stage) => built.get(&stage).map(|built| &built.disk),
            Origin::Image(name) => self.disks.get(Some(&name)).map(|(disk, _)| disk),
            Origin::Scratch => self.disks.get(None).map(|(disk, _)| disk),
        };
        found.ok_or_else(|| format!("there is no stage or image {name:?}"))
    }

    /// Does a step in a VM, on a layer of its own.
    async fn perform(
        &self,
        work: Work,
        key: Digest,
        line: usize,
        events: &mut impl AsyncFnMut(BuildEvent<'_>),
    ) -> Result<PathBuf, BuildError> {
        let base = &self.disk.base;
        let least_size = u64::from(self.plan.options.disk_mib) << 20;
        let layer = self.layers.begin(&self.disk.path, base, least_size)?;
        let mut builder = (self.plan.options.configure)(Vm::builder());
        if self.plan.options.disk_mib > 0 {
            builder = builder.disk_mib(self.plan.options.disk_mib);
        }
        let backing = self.layers.folders(base);
        let machine = Machine::start(builder, &layer, backing, &work, line).await?;
        let done = async {
            machine.make_directories(&self.directories).await?;
            machine.perform(work, events).await
        };
        match done.await {
            Ok(()) => machine.stop().await?,
            Err(error) => {
                machine.kill().await;
                return Err(error);
            }
        }
        self.layers.keep(layer, key, base)
    }
}
